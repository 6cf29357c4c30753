"""The broker of a queue, as its one writer uses it: a connection of its own, and waits without a limit.

Closing the connection resets it, and so does the end of this process: a dead writer's kernel delivers nothing
more. The waits end when the end of the queue is trustworthy: an answering period, then a fence message.

- ``dispatchBehindBytes=0`` does not mean that messages are visible: brokers report it while a flush holds
  messages back. The only proof is a message of one's own that is stored later and visible.
- A broker that stood still stores the requests in its buffers, of closed connections too. Its kernel has
  acknowledged those bytes, so no socket option of the client helps. The client must wait until the broker has
  answered for some seconds.
- A kept request has no timer. The kernel notices a host that is gone: by its probes, or by its
  retransmissions (15 minutes) while bytes are not acknowledged.
- ``TCP_USER_TIMEOUT`` would end the connection of a broker that stands still with a full buffer; its answer
  would be lost.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TypeVar

from rmqtools.engine.admin.topics import topic_header
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.connection.transport import Connection
from rmqtools.engine.producer.encode_send import Encoder
from rmqtools.errors import BrokerError, ClientStateError, RemotingError, RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.append_mark import FENCE_TOPIC
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.message import Message
from rmqtools.model.queue import MessageQueue
from rmqtools.model.route import Perm
from rmqtools.policy.exact_append import Answered, AnsweringPeriod, meaning_of
from rmqtools.protocol.headers.codec import decode_header
from rmqtools.protocol.headers.offset import GetMaxOffsetRequestHeader, OffsetResponseHeader
from rmqtools.protocol.headers.send import SendMessageResponseHeader
from rmqtools.protocol.wire.command import RemotingCommand, request
from rmqtools.protocol.wire.template import Request

T = TypeVar("T")
log = get_logger(__name__)

_PAUSE = 0.25  # seconds between requests while a broker is waited for
_FENCE_PAUSE = 0.005  # seconds between looks for a fence: brokers show messages within milliseconds
_LOG_INTERVAL = 30.0  # seconds between two log events while an answer is awaited
_ANY_REQUEST = RemotingCommand(RequestCode.GET_BROKER_RUNTIME_INFO)


class OwnBroker:
    """The master of a queue's broker, with a connection that has at most one request on the wire.

    Attributes:
        addr: the address of the connection.
        waits_for: the reason of the wait that is under way; empty: none.
    """

    def __init__(self, client: ClientCore, encoder: Encoder, queue: MessageQueue) -> None:
        self._client = client
        self._encoder = encoder
        self._queue = queue
        self._fence_queue = MessageQueue(FENCE_TOPIC, queue.broker_name, 0)
        self._connection: Connection | None = None
        self._answer: asyncio.Future[RemotingCommand] | None = None
        self._is_closed = False
        self.addr = ""
        self.waits_for = ""

    @property
    def is_open(self) -> bool:
        """True if a request can be written: the connection is open, and leads to the master of now."""
        if self._connection is None or not self._connection.is_open:
            return False
        try:
            return self.addr == self._master()
        except RemotingError:  # routes name no master: the next answer says more
            return True

    @property
    def has_request(self) -> bool:
        """True if a request is on the wire, or was when the connection was lost."""
        return self._answer is not None

    async def open(self) -> None:
        """Connect to the master unless it is connected, however long that takes.

        Raises:
            ClientStateError: it was closed.
        """
        while not self.is_open:
            await self.patiently(self._connect)

    def start(self, request: Request) -> None:
        """Write a request at once."""
        assert self._connection is not None
        self._answer = self._connection.start_kept(self._client.remoting.signed(request))

    async def answer(self) -> RemotingCommand | None:
        """Wait for the answer to the request, however long that takes; None: the connection was lost.

        A cancelled call may be repeated.
        """
        assert self._answer is not None
        while not (await asyncio.wait({self._answer}, timeout=_LOG_INTERVAL))[0]:
            log.warning("answer_awaited", addr=self.addr)
        try:
            return self._answer.result()
        except RocketMQError as error:
            log.info("answer_lost", addr=self.addr, reason=str(error))
            return None
        finally:
            self._answer = None

    def abort(self) -> None:
        """Reset the connection: what the broker has not accepted yet is dropped."""
        if self._connection is not None:
            self._connection.abort()

    def close(self) -> None:
        """Reset the connection, for good."""
        self._is_closed = True
        self.abort()
        if self._answer is not None:
            self._answer.add_done_callback(_retrieve)

    def check_open(self) -> None:
        """Raise a ClientStateError after :meth:`close`."""
        if self._is_closed:
            raise ClientStateError("the appender is closed: make a new one")

    async def await_answering(self, seconds: float) -> None:
        """Wait until the broker has answered for so many seconds in a row.

        After that, no request of a connection that was lost before can be stored any more.
        """
        period, now = AnsweringPeriod(seconds), self._client.clock.monotonic

        async def ask() -> None:
            asked_at = now()
            try:
                await self._client.remoting.invoke_ok(self._master(), _ANY_REQUEST)
            except (RemotingError, BrokerError):
                period.missed()
                raise
            period.answered(asked_at, now())

        while True:
            await self.patiently(ask)
            if period.is_over(now()):
                return
            self.waits_for = "late requests of an earlier connection"
            await asyncio.sleep(_PAUSE)

    async def pass_fence(self) -> None:
        """Send a message to a private topic, and wait until it is visible.

        Brokers show messages in the order of their commit log, whatever topic they are in. So all that was
        stored before is visible, too.
        """
        offset = await self.patiently(self._send_fence)
        while await self.patiently(self._fence_end) <= offset:  # noqa: ASYNC110 - a broker's state
            await asyncio.sleep(_FENCE_PAUSE)

    async def patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run ``work`` until the broker has answered; an answer that refuses is raised."""
        while True:
            try:
                found = await work()
            except (RemotingError, BrokerError) as error:
                if isinstance(error, BrokerError) and meaning_of(error.code) is Answered.REFUSED:
                    raise
                await self.pause(error)
            else:
                self.waits_for = ""
                return found

    async def pause(self, error: RocketMQError) -> None:
        """Wait a little after an error, and look up where the broker is now."""
        what = f"broker {self._queue.broker_name!r}"
        if self.waits_for != what:  # logged once
            self.waits_for = what
            log.warning("broker_awaited", broker=self._queue.broker_name, reason=str(error))
        await asyncio.sleep(_PAUSE)
        with contextlib.suppress(RocketMQError):  # the next request says what is wrong
            await self._client.routes.refresh(self._queue.topic)

    def _master(self) -> str:
        return self._client.routes.master_addr(self._queue.broker_name)

    async def _connect(self) -> None:
        self.check_open()
        self._client.check_started()
        self.abort()
        self.addr = self._master()
        self._connection = await self._client.remoting.open_alone(self.addr)

    async def _send_fence(self) -> int:
        outgoing = self._encoder.encode(Message(FENCE_TOPIC, b"fence"))
        command = outgoing.request_to(self._fence_queue, self._queue.broker_name, creates_topic=False)
        answer = await self._client.remoting.invoke(self._master(), command)
        if answer.code == ResponseCode.TOPIC_NOT_EXIST:
            header = topic_header(outgoing.wire_topic, 1, 1, Perm.READ | Perm.WRITE)
            await self._client.remoting.invoke_ok(self._master(), request(header))
            log.info("fence_topic_created", broker=self._queue.broker_name)
            answer = await self._client.remoting.invoke(self._master(), command)
        if meaning_of(answer.code) is not Answered.STORED:
            raise BrokerError(answer.code, answer.remark, self._master())
        return decode_header(SendMessageResponseHeader, answer.ext_fields).queue_offset

    async def _fence_end(self) -> int:
        wire_topic = self._client.wire_topic(FENCE_TOPIC)
        header = GetMaxOffsetRequestHeader(topic=wire_topic, queue_id=0, bname=self._queue.broker_name)
        answer = await self._client.remoting.invoke_ok(self._master(), request(header))
        return decode_header(OffsetResponseHeader, answer.ext_fields).offset


def _retrieve(answer: "asyncio.Future[RemotingCommand]") -> None:
    if not answer.cancelled():
        answer.exception()  # nobody waits for it any more
