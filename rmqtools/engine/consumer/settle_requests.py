"""The requests that settle popped messages (5.x): acknowledge one or many, or hide one for another time.

ACK_MESSAGE names one message and is answered for it. BATCH_ACK_MESSAGE names many, and brokers answer it with
SUCCESS whatever became of each: a message of which the acknowledgement did not count comes again.
Source of the rules: DefaultMQPushConsumerImpl.ackAsync, changePopInvisibleTimeAsync,
MQClientAPIImpl.batchAckMessageAsync (Java client), AckMessageProcessor (broker).
"""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

from rmqtools.engine.connection.client import ClientCore
from rmqtools.model.codes import RequestCode
from rmqtools.model.message import MessageExt
from rmqtools.model.message_const import PROPERTY_POP_CK
from rmqtools.model.queue import MessageQueue
from rmqtools.protocol.headers.pop_extra_info import PopExtraInfo, parse_extra_info
from rmqtools.protocol.headers.pull import AckMessageRequestHeader, ChangeInvisibleTimeRequestHeader
from rmqtools.protocol.messages.batch_ack import batch_ack_body
from rmqtools.protocol.messages.popped import receipt_parts
from rmqtools.protocol.wire.command import RemotingCommand, request
from rmqtools.protocol.wire.template import Request, RequestTemplate


class PoppedMessage(NamedTuple):
    """The data of a popped message that its broker needs. ``topic`` is the plain name."""

    topic: str
    info: PopExtraInfo
    extra_info: str
    offset: int

    @classmethod
    def of(cls, message: MessageExt) -> Self:
        """Return that of a message.

        Raises:
            KeyError: it was not popped.
            ProtocolError: its extra info cannot be read.
        """
        text = message.properties[PROPERTY_POP_CK]
        info = parse_extra_info(text)
        offset = message.queue_offset if info.queue_offset is None else info.queue_offset
        return cls(message.topic, info, text, offset)


class SentRequest(NamedTuple):
    """A request on its way."""

    popped: PoppedMessage
    code: int
    addr: str
    answer: asyncio.Future[RemotingCommand]


class SettleRequests:
    """Makes the requests of one group, finds the broker of each, and sends them."""

    def __init__(self, client: ClientCore, group: str) -> None:
        self._client = client
        self._group = group
        self._forms: dict[tuple[str, str], RequestTemplate] = {}  # of acknowledgements, by topic and broker

    def queue(self, popped: PoppedMessage) -> MessageQueue:
        """Return the queue that a message was popped from, with its wire name."""
        info = popped.info
        return MessageQueue(self._client.wire_topic(popped.topic), info.broker_name, info.queue_id)

    def addr(self, popped: PoppedMessage) -> str:
        """Return the address of the broker that has the message.

        Raises:
            RemotingConnectError: the known routes have no such broker.
        """
        return self._client.routes.master_addr(self._client.routes.broker_name(self.queue(popped)))

    def acknowledge(self, popped: PoppedMessage) -> Request:
        """Return the request that acknowledges one message."""
        info, topic = popped.info, self._stored_in(popped)
        if (form := self._forms.get((topic, info.broker_name))) is not None:
            return form.fill(info.queue_id, popped.offset, text=popped.extra_info)
        command = request(AckMessageRequestHeader(**self._place(popped, topic)))
        self._forms[topic, info.broker_name] = RequestTemplate(command, ("queueId", "offset"), "extraInfo")
        return command

    def acknowledge_many(
        self, messages: Sequence[MessageExt]
    ) -> tuple[RemotingCommand | None, list[MessageExt]]:
        """Return the request that acknowledges messages of one broker, and the messages it leaves out.

        None: it leaves out all.
        """
        names = {topic: self._client.wire_topic(topic) for topic in {one.topic for one in messages}}
        body, left_out = batch_ack_body(
            self._group, [(names[one.topic], receipt_parts(one)) for one in messages]
        )
        alone = [messages[place] for place in left_out]
        return (None if body is None else RemotingCommand(RequestCode.BATCH_ACK_MESSAGE, body=body)), alone

    def hide(self, popped: PoppedMessage, seconds: float, *, suspend: bool = False) -> RemotingCommand:
        """Return the request that hides a message for ``seconds`` from now on.

        ``suspend``: the delivery after that does not count as another try.
        """
        place = self._place(popped, self._stored_in(popped))
        milliseconds = round(seconds * 1000)
        header = ChangeInvisibleTimeRequestHeader(**place, invisible_time=milliseconds, suspend=suspend)
        return request(header)

    def send(self, popped: PoppedMessage, addr: str, command: Request) -> SentRequest:
        """Send a request, at once if the connection to its broker is open."""
        answer = asyncio.ensure_future(self._client.remoting.invoke(addr, command))
        return SentRequest(popped, command.code, addr, answer)

    async def check(self, asked: SentRequest) -> None:
        """Wait for the answer to a request.

        Raises:
            BrokerError, RemotingError: the broker refused, or did not answer.
        """
        self._client.remoting.checked(await asked.answer, asked.code, asked.addr)

    def _stored_in(self, popped: PoppedMessage) -> str:
        """Return the wire name of the topic that stores a message: perhaps the retry topic of its own."""
        return popped.info.real_topic(self._client.wire_topic(popped.topic), self._group)

    def _place(self, popped: PoppedMessage, topic: str) -> dict[str, Any]:
        return {
            "consumer_group": self._group,
            "topic": topic,
            "queue_id": popped.info.queue_id,
            "extra_info": popped.extra_info,
            "offset": popped.offset,
            "bname": popped.info.broker_name,
        }
