"""Waits after which the end of a queue is trustworthy: an answering period, then a fence message."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TypeVar

from rmqtools.engine.admin.topics import topic_header
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.producer.encode_send import Encoder
from rmqtools.errors import BrokerError, RemotingError, RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.append_mark import FENCE_TOPIC
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.message import Message
from rmqtools.model.queue import MessageQueue
from rmqtools.model.route import Perm
from rmqtools.policy.exact_append import Answered, AnsweringPeriod, Fence, is_restarted, meaning_of
from rmqtools.protocol.headers.codec import decode_header
from rmqtools.protocol.headers.offset import GetMaxOffsetRequestHeader, OffsetResponseHeader
from rmqtools.protocol.headers.send import SendMessageResponseHeader
from rmqtools.protocol.wire.bodies import parse_kv_table
from rmqtools.protocol.wire.command import RemotingCommand, request

T = TypeVar("T")
log = get_logger(__name__)

PAUSE = 0.25  # seconds between requests while a broker is waited for
_FENCE_PAUSE = 0.005  # seconds between looks for a fence: brokers show messages within milliseconds
BOOT_TIME = RemotingCommand(RequestCode.GET_BROKER_RUNTIME_INFO)
"""The request whose answer has the time at which a broker was started."""


def boot_time(answer: RemotingCommand) -> str | None:
    """Return when a broker was started, as it says; None: it does not."""
    return parse_kv_table(answer.body).get("bootTimestamp")


class Settlement:
    """The waits for the broker of a queue. They end with the broker's answers, or are cancelled."""

    def __init__(self, client: ClientCore, encoder: Encoder, queue: MessageQueue) -> None:
        self._client = client
        self._encoder = encoder
        self._topic = queue.topic
        self._broker_name = queue.broker_name
        self._fence_queue = MessageQueue(FENCE_TOPIC, queue.broker_name, 0)
        self._is_awaited = False

    async def await_answering(self, seconds: float, boot_before: str | None) -> None:
        """Wait until the broker has answered for so many seconds in a row, or was started again.

        After that, no request of a connection that was lost before can be stored any more.
        """
        period, now = AnsweringPeriod(seconds), self._client.clock.monotonic
        while True:
            asked_at = now()
            try:
                boot_now = boot_time(await self._client.remoting.invoke_ok(self.addr(), BOOT_TIME))
            except (RemotingError, BrokerError) as error:
                period.missed()
                await self.pause(error)
                continue
            self._is_awaited = False
            period.answered(asked_at, now())
            if is_restarted(boot_before, boot_now) or period.is_over(now()):
                return
            await asyncio.sleep(PAUSE)

    async def pass_fence(self) -> None:
        """Send a fence message and wait until it is visible: then all that was stored before is, too."""
        fence = await self.patiently(self._send_fence)
        while not fence.is_passed(await self.patiently(self._max_offset)):  # noqa: ASYNC110 - a broker's state
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
                self._is_awaited = False
                return found

    async def pause(self, error: RocketMQError) -> None:
        """Wait a little after an error, and look up where the broker is now."""
        if not self._is_awaited:  # logged once
            self._is_awaited = True
            log.warning("broker_awaited", broker=self._broker_name, reason=str(error))
        await asyncio.sleep(PAUSE)
        with contextlib.suppress(RocketMQError):  # the next request says what is wrong
            await self._client.routes.refresh(self._topic)

    def addr(self) -> str:
        """Return the address of the broker's master."""
        return self._client.routes.master_addr(self._broker_name)

    async def _send_fence(self) -> Fence:
        outgoing = self._encoder.encode(Message(FENCE_TOPIC, b"fence"))
        command = outgoing.request_to(self._fence_queue, self._broker_name, creates_topic=False)
        answer = await self._client.remoting.invoke(self.addr(), command)
        if answer.code == ResponseCode.TOPIC_NOT_EXIST:
            await self._create_topic(outgoing.wire_topic)
            answer = await self._client.remoting.invoke(self.addr(), command)
        if meaning_of(answer.code) is not Answered.STORED:
            raise BrokerError(answer.code, answer.remark, self.addr())
        return Fence(decode_header(SendMessageResponseHeader, answer.ext_fields).queue_offset)

    async def _max_offset(self) -> int:
        header = GetMaxOffsetRequestHeader(
            topic=self._client.wire_topic(FENCE_TOPIC), queue_id=0, bname=self._broker_name
        )
        answer = await self._client.remoting.invoke_ok(self.addr(), request(header))
        return decode_header(OffsetResponseHeader, answer.ext_fields).offset

    async def _create_topic(self, wire_topic: str) -> None:
        header = topic_header(wire_topic, 1, 1, Perm.READ | Perm.WRITE)
        await self._client.remoting.invoke_ok(self.addr(), request(header))
        log.info("fence_topic_created", broker=self._broker_name)
