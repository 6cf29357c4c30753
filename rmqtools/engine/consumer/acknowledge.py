"""Settles popped messages (5.x): acknowledges consumed ones, hides failed ones until their next delivery.

A batch that the broker stores as one message is popped and acknowledged as one, once all its messages are
settled. Brokers 5.5.0 never deliver such a batch again: they refuse to write one to the retry topic of popped
messages (HookUtils.checkInnerBatch), unless an operator has created that topic with queue type BatchCQ. So
``consume_pop`` sends each failed message of a batch to the group's retry topic.
The Java client does not unwrap popped batches.

Brokers 5.5.0 never deliver a popped stored batch again: their retry topic has another queue type, so they
refuse to store the batch there, and try again for ever. A failed message of a batch therefore goes to the
group's retry topic by itself. Messages that a killed member had are lost to the group, unless an operator
created the topic ``%RETRY%group_topic`` with the attribute ``queue.type=BatchCQ`` beforehand. The warning
``stored_batches_popped`` names it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.connection.remoting import forget_answer
from rmqtools.engine.consumer.settle_requests import PoppedMessage, SentRequest, SettleRequests
from rmqtools.errors import BrokerError, RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.message import MessageExt
from rmqtools.model.message_const import PROPERTY_POP_CK
from rmqtools.model.names import pop_retry_topic
from rmqtools.model.route import BATCH_CQ
from rmqtools.policy.endpoint.features import BATCH_ACKNOWLEDGEMENTS
from rmqtools.policy.endpoint.versions import parse_version
from rmqtools.protocol.headers.pop_extra_info import PopExtraInfo, format_extra_info
from rmqtools.protocol.messages.inner_batch import INNER_BATCH, has_sys_flag, is_inner_batch
from rmqtools.protocol.wire.command import RemotingCommand

log = get_logger(__name__)

_SINCE = parse_version(BATCH_ACKNOWLEDGEMENTS.since)


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
        self._requests = SettleRequests(client, group)
        self._warned: set[str] = set()
        self._take_many: set[str] = set()  # names of brokers

    def expect(self, messages: Sequence[MessageExt]) -> None:
        """Note the popped batches among these messages; each of their messages must be settled later."""
        if not has_sys_flag(messages, INNER_BATCH):
            return
        of_batches = [message for message in messages if is_inner_batch(message.sys_flag)]
        if not of_batches:
            return
        self._warn(of_batches[0].topic)
        for text, count in Counter(message.properties[PROPERTY_POP_CK] for message in of_batches).items():
            self._batches[text] = _Batch(count)

    def note_version(self, broker_name: str, version: int) -> None:
        """Note the version of a broker, as its answers have it: whether it takes many messages at once."""
        if version >= _SINCE:
            self._take_many.add(broker_name)
        else:
            self._take_many.discard(broker_name)

    def takes_many(self, broker_name: str) -> bool:
        """Return whether a broker takes many acknowledgements at once, as far as its answers are known."""
        return broker_name in self._take_many

    def together(self, messages: Sequence[MessageExt]) -> RemotingCommand | None:
        """Return the request that acknowledges messages of such a broker; None: no request takes them all.

        Safe on any thread. None of them may belong to a stored batch.
        """
        command, left_out = self._requests.acknowledge_many(messages)
        return None if left_out else command

    async def acknowledge_all(self, messages: Sequence[MessageExt]) -> None:
        """Acknowledge consumed messages of one broker: by one request, if it knows such requests.

        What the broker does not accept is logged, and delivered again.
        """
        at_once = bool(messages) and self.takes_many(messages[0].broker_name)
        if at_once and not self._batches:  # nearly always
            await self._acknowledge_together(messages)
            return
        due = [one for message in messages if (one := self._due(message, None)) is not None]
        if at_once and due and all(hidden_for is None for _, hidden_for in due):
            await self._acknowledge_together([message for message, _ in due])
        else:
            await self._settle_singly(due)

    async def _acknowledge_together(self, messages: Sequence[MessageExt]) -> None:
        """Acknowledge messages by one request; singly what the broker refuses or has no room for."""
        if len(messages) == 1:
            await self._settle_singly([(messages[0], None)])
            return
        command, left_out = self._requests.acknowledge_many(messages)
        if command is not None:
            try:
                addr = self._requests.addr(PoppedMessage.of(messages[0]))
                await self._client.remoting.invoke_ok(addr, command)
            except BrokerError as error:  # an acknowledgement that counted does no harm a second time
                log.info("acknowledged_singly", broker=messages[0].broker_name, reason=str(error))
                left_out = list(messages)
            except RocketMQError as error:
                reason, count = str(error), len(messages)
                broker_name = messages[0].broker_name
                log.warning("popped_messages_not_settled", broker=broker_name, count=count, reason=reason)
        await self._settle_singly([(message, None) for message in left_out])

    async def _settle_singly(self, due: Iterable[tuple[MessageExt, float | None]]) -> None:
        """Settle messages, each by its own request; all are written before the first answer."""
        asked = [self._ask(PoppedMessage.of(message), hidden_for) for message, hidden_for in due]
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
        if due is None:
            return True
        return await self._is_accepted(self._ask(PoppedMessage.of(due[0]), due[1]))

    def _due(self, message: MessageExt, hidden_for: float | None) -> tuple[MessageExt, float | None] | None:
        """Return how to settle a message; None: not before the rest of its batch is settled."""
        batch = self._batches.get(message.properties[PROPERTY_POP_CK]) if self._batches else None
        if batch is not None:
            batch.left -= 1
            if hidden_for is not None:
                batch.hidden_for = max(hidden_for, batch.hidden_for or 0.0)
            if batch.left:
                return None
            del self._batches[message.properties[PROPERTY_POP_CK]]
            hidden_for = batch.hidden_for
        return message, hidden_for

    def _warn(self, topic: str) -> None:
        """Warn once per topic: popped batches of a member that is killed are not delivered again."""
        if topic not in self._warned:
            self._warned.add(topic)
            create = pop_retry_topic(self._client.wire_topic(topic), self._group)
            log.warning("stored_batches_popped", topic=topic, create=create, queue_type=BATCH_CQ)

    async def acknowledge_broken(self, topic: str, info: PopExtraInfo) -> bool:
        """Acknowledge a message that cannot be decoded; otherwise it would be delivered again for ever."""
        assert info.queue_offset is not None
        broken = PoppedMessage(topic, info, format_extra_info(info), info.queue_offset)
        return await self._is_accepted(self._ask(broken, None))

    def _ask(self, popped: PoppedMessage, hidden_for: float | None) -> SentRequest | None:
        """Send a request, at once if the connection to its broker is open; None: there is no such broker."""
        try:
            addr = self._requests.addr(popped)
        except RocketMQError as error:
            self._log_refusal(popped, error)
            return None
        requests = self._requests
        command = requests.acknowledge(popped) if hidden_for is None else requests.hide(popped, hidden_for)
        return requests.send(popped, addr, command)

    async def _is_accepted(self, asked: SentRequest | None) -> bool:
        if asked is None:
            return False
        try:
            await self._requests.check(asked)
        except RocketMQError as error:
            self._log_refusal(asked.popped, error)
            return False
        return True

    def _log_refusal(self, popped: PoppedMessage, error: RocketMQError) -> None:
        queue = str(self._requests.queue(popped))
        log.warning("popped_message_not_settled", queue=queue, offset=popped.offset, reason=str(error))
