"""Settles popped messages (5.x): acknowledges consumed ones, hides failed ones until their next delivery.

A batch that the broker stores as one message is popped and acknowledged as one, once all its messages are
settled. Brokers 5.5.0 never deliver such a batch again: they refuse to write one to the retry topic of popped
messages (HookUtils.checkInnerBatch), unless an operator has created that topic with queue type BatchCQ. So
``consume_pop`` sends each failed message of a batch to the group's retry topic.
Source of the rules: DefaultMQPushConsumerImpl.ackAsync, changePopInvisibleTimeAsync (Java client, which does
not unwrap popped batches).
"""

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.connection.remoting import forget_answer
from rmqtools.errors import RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.message import MessageExt
from rmqtools.model.message_const import PROPERTY_POP_CK
from rmqtools.model.names import pop_retry_topic
from rmqtools.model.queue import MessageQueue
from rmqtools.model.route import BATCH_CQ
from rmqtools.protocol.headers import AckMessageRequestHeader, ChangeInvisibleTimeRequestHeader
from rmqtools.protocol.headers.pop_extra_info import PopExtraInfo, format_extra_info, parse_extra_info
from rmqtools.protocol.messages.inner_batch import is_inner_batch
from rmqtools.protocol.wire.command import RemotingCommand, request
from rmqtools.protocol.wire.template import Request, RequestTemplate

log = get_logger(__name__)


@dataclass(slots=True)
class _Batch:
    """A popped batch: its unsettled messages, and its next invisible time."""

    left: int
    hidden_for: float | None = None


class Acknowledger:
    """Acknowledges and hides the popped messages of one group. Messages have plain topics."""

    def __init__(self, client: ClientCore, group: str) -> None:
        self._client = client
        self._group = group
        self._batches: dict[str, _Batch] = {}  # by POP_CK
        self._forms: dict[tuple[str, str], RequestTemplate] = {}  # of acknowledgements, by topic and broker
        self._warned: set[str] = set()

    def expect(self, messages: Iterable[MessageExt]) -> None:
        """Note the popped batches among these messages; each of their messages must be settled later."""
        of_batches = [message for message in messages if is_inner_batch(message.sys_flag)]
        if not of_batches:
            return
        self._warn(of_batches[0].topic)
        for text, count in Counter(message.properties[PROPERTY_POP_CK] for message in of_batches).items():
            self._batches[text] = _Batch(count)

    async def acknowledge_all(self, messages: Iterable[MessageExt]) -> None:
        """Acknowledge consumed messages, each by its own request; all are written before the first answer.

        What a broker does not accept is logged, and delivered again.
        """
        asked = [self._ask(due) for one in messages if (due := self._due(one, None)) is not None]
        try:
            for one in asked:
                await self._is_accepted(one)
        finally:
            for one in asked:
                if one is not None:
                    forget_answer(one.answer)

    async def acknowledge(self, message: MessageExt) -> bool:
        """Acknowledge a consumed message; result as :meth:`hide`. On failure it is delivered again."""
        return await self._settle(message, None)

    async def hide(self, message: MessageExt, seconds: float) -> bool:
        """Hide a message for ``seconds`` until its next delivery.

        Returns True if the broker accepted it, or the message waits for the rest of its batch. False: the
        message is delivered when its current invisible time ends.
        """
        return await self._settle(message, seconds)

    async def _settle(self, message: MessageExt, hidden_for: float | None) -> bool:
        due = self._due(message, hidden_for)
        return due is None or await self._is_accepted(self._ask(due))

    def _due(self, message: MessageExt, hidden_for: float | None) -> "_Popped | None":
        """Return the request for a message; None: none before the rest of its batch is settled."""
        batch = self._batches.get(message.properties[PROPERTY_POP_CK]) if self._batches else None
        if batch is not None:
            batch.left -= 1
            if hidden_for is not None:
                batch.hidden_for = max(hidden_for, batch.hidden_for or 0.0)
            if batch.left:
                return None
            del self._batches[message.properties[PROPERTY_POP_CK]]
            hidden_for = batch.hidden_for
        return _Popped.of(message, hidden_for)

    def _warn(self, topic: str) -> None:
        """Warn once per topic: popped batches of a member that is killed are not delivered again."""
        if topic not in self._warned:
            self._warned.add(topic)
            create = pop_retry_topic(self._client.wire_topic(topic), self._group)
            log.warning("stored_batches_popped", topic=topic, create=create, queue_type=BATCH_CQ)

    async def acknowledge_broken(self, topic: str, info: PopExtraInfo) -> bool:
        """Acknowledge a message that cannot be decoded; otherwise it would be delivered again for ever."""
        assert info.queue_offset is not None
        broken = _Popped(topic, info, format_extra_info(info), info.queue_offset, None)
        return await self._is_accepted(self._ask(broken))

    def _ask(self, popped: "_Popped") -> "_Asked | None":
        """Send a request, at once if the connection to its broker is open; None: there is no such broker."""
        routes, info = self._client.routes, popped.info
        queue = MessageQueue(self._client.wire_topic(popped.topic), info.broker_name, info.queue_id)
        try:
            addr = routes.master_addr(routes.broker_name(queue))
        except RocketMQError as error:
            self._log_refusal(popped, error)
            return None
        command = self._request(popped, queue.topic)
        return _Asked(
            popped, command.code, addr, asyncio.ensure_future(self._client.remoting.invoke(addr, command))
        )

    async def _is_accepted(self, asked: "_Asked | None") -> bool:
        if asked is None:
            return False
        try:
            self._client.remoting.checked(await asked.answer, asked.code, asked.addr)
        except RocketMQError as error:
            self._log_refusal(asked.popped, error)
            return False
        return True

    def _log_refusal(self, popped: "_Popped", error: RocketMQError) -> None:
        info = popped.info
        queue = MessageQueue(self._client.wire_topic(popped.topic), info.broker_name, info.queue_id)
        log.warning("popped_message_not_settled", queue=str(queue), offset=popped.offset, reason=str(error))

    def _request(self, popped: "_Popped", wire_topic: str) -> Request:
        info, hidden_for = popped.info, popped.hidden_for
        topic = info.real_topic(wire_topic, self._group)
        if hidden_for is None and (form := self._forms.get((topic, info.broker_name))) is not None:
            return form.fill(info.queue_id, popped.offset, text=popped.extra_info)
        place: dict[str, Any] = {
            "consumer_group": self._group,
            "topic": topic,
            "queue_id": info.queue_id,
            "extra_info": popped.extra_info,
            "offset": popped.offset,
            "bname": info.broker_name,
        }
        if hidden_for is not None:
            return request(ChangeInvisibleTimeRequestHeader(**place, invisible_time=round(hidden_for * 1000)))
        command = request(AckMessageRequestHeader(**place))
        self._forms[topic, info.broker_name] = RequestTemplate(command, ("queueId", "offset"), "extraInfo")
        return command


class _Popped(NamedTuple):
    """What brokers must be told of a popped message.

    ``topic`` is the plain name, ``hidden_for`` the seconds until its next delivery; None: it is consumed.
    """

    topic: str
    info: PopExtraInfo
    extra_info: str
    offset: int
    hidden_for: float | None

    @classmethod
    def of(cls, message: MessageExt, hidden_for: float | None) -> Self:
        text = message.properties[PROPERTY_POP_CK]
        info = parse_extra_info(text)
        offset = message.queue_offset if info.queue_offset is None else info.queue_offset
        return cls(message.topic, info, text, offset, hidden_for)


class _Asked(NamedTuple):
    """A request on its way."""

    popped: _Popped
    code: int
    addr: str
    answer: asyncio.Future[RemotingCommand]
