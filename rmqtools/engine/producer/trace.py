"""Message trace: sends records of stored and consumed messages to the trace topic, in the background.

Records wait in a bounded queue and are sent in batches, through the client's own connections. Errors never
reach a send or a listener: the records are dropped and counted, and one warning is logged.
Source of the rules: AsyncTraceDispatcher, SendMessageTraceHookImpl (Java client).
"""

import asyncio
from collections import deque
from collections.abc import Sequence

from rmqtools.config import ProducerConfig
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.producer.encode_send import Encoder
from rmqtools.engine.producer.send import Sender
from rmqtools.errors import RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.message import Message, body_length
from rmqtools.model.names import without_namespace
from rmqtools.model.result import SendResult, SendStatus
from rmqtools.model.trace import PubTrace, SubAfterTrace, SubBeforeTrace, TraceMessageType
from rmqtools.model.transaction import TransactionSendResult
from rmqtools.protocol.messages.trace import format_pub, format_sub_after, format_sub_before, trace_keys

log = get_logger(__name__)

Record = PubTrace | SubBeforeTrace | SubAfterTrace

_MAX_QUEUED = 2048  # upstream traceContextQueue
_BATCH = 100  # records per message; upstream at most 20, so one message for every 20 sends
_MAX_KEYS_LENGTH = 8_000
_FLUSH_INTERVAL = 5.0  # seconds; upstream flushTraceInterval
_SEND_TIMEOUT = 5.0  # seconds; upstream the trace producer's sendMsgTimeout
_CLOSE_GRACE = 5.0  # seconds; upstream WAIT_FOR_SHUTDOWN


class TraceDispatcher:
    """Collects records and sends them. ``dropped`` counts records that were not stored.

    Args:
        client: the client whose connections carry the trace messages.
        config: of a producer; with the trace topic, and the group that the trace messages name.
        encoder: gives the trace messages their ids.
    """

    def __init__(self, client: ClientCore, config: ProducerConfig, encoder: Encoder) -> None:
        self._client = client
        self._config = config
        self._encoder = encoder
        self._sender = Sender(client, config)
        self._queue: deque[Record] = deque()
        self._enough = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._flushing = asyncio.Lock()
        self._is_told = False  # that the servers want no traces
        self.dropped = 0

    def add(self, records: Sequence[Record]) -> None:
        """Note records, to be sent later. Never raises, never waits; safe on any thread."""
        room = max(_MAX_QUEUED - len(self._queue), 0)
        self._queue.extend(records[:room])
        if len(records) > room:
            self._drop(len(records) - room, "the queue of records is full")
        if len(self._queue) >= _BATCH and not self._enough.is_set() and self._loop is not None:
            self._loop.call_soon_threadsafe(self._enough.set)

    def note_switched_off(self, by: str) -> None:
        """Log, once, that a server takes no records of its messages."""
        if not self._is_told:
            self._is_told = True
            log.warning("trace_switched_off", by=by, field="TRACE_ON=false")

    async def run(self) -> None:
        """Send the records, every few seconds or when they fill a message."""
        self._loop = asyncio.get_running_loop()
        while True:
            try:
                async with asyncio.timeout(_FLUSH_INTERVAL):
                    await self._enough.wait()
            except TimeoutError:
                pass
            self._enough.clear()
            await self._flush()

    async def close(self) -> None:
        """Send the remaining records, within some seconds."""
        try:
            async with asyncio.timeout(_CLOSE_GRACE):
                await self._flush()
        except TimeoutError:
            self._drop(len(self._queue), f"not sent within {_CLOSE_GRACE} s of closing")

    async def _flush(self) -> None:
        async with self._flushing:
            while records := self._next_batch():
                await self._send(records)

    def _next_batch(self) -> list[Record]:
        """Return the records that fit into a message: its keys share 32 KB with its other properties."""
        records: list[Record] = []
        keys_length = 0
        while self._queue and len(records) < _BATCH and keys_length < _MAX_KEYS_LENGTH:
            records.append(self._queue.popleft())
            keys_length += len(records[-1].msg_id) + len(records[-1].keys or "")
        return records

    async def _send(self, records: Sequence[Record]) -> None:
        text = "".join(map(_text, records))
        message = Message(self._config.trace_topic, text.encode(), keys=trace_keys(records))
        try:
            outgoing = self._encoder.encode(message)
            await self._sender.place_one(outgoing, message=message, timeout=_SEND_TIMEOUT)
        except RocketMQError as error:
            self._drop(len(records), str(error))
        except asyncio.CancelledError:
            self._drop(len(records), "the client was closed before they were stored")
            raise

    def _drop(self, count: int, reason: str) -> None:
        if count and not self.dropped:
            log.warning("trace_dropped", topic=self._config.trace_topic, reason=reason)
        self.dropped += count


class SendTraces:
    """Records of the messages that one producer has stored."""

    def __init__(self, client: ClientCore, config: ProducerConfig, encoder: Encoder) -> None:
        self._client = client
        self._config = config
        self.dispatcher = TraceDispatcher(client, config, encoder)

    def stored(self, messages: Sequence[Message], results: Sequence[SendResult]) -> None:
        """Record stored messages. Never raises, never waits."""
        records = []
        for message, result in zip(messages, results, strict=True):
            if not result.is_trace_on:
                self.dispatcher.note_switched_off(result.attempts[-1].broker_addr)
            elif result.region_id is not None and message.topic != self._config.trace_topic:
                records.append(self._record(message, result))
        self.dispatcher.add(records)

    def _record(self, message: Message, result: SendResult) -> PubTrace:
        attempt = result.attempts[-1]
        cost_ms = round(attempt.seconds * 1000)
        return PubTrace(
            timestamp_ms=self._client.clock.now_ms() - cost_ms,
            region_id=result.region_id or "",
            group=without_namespace(self._config.group),
            topic=without_namespace(message.topic),
            msg_id=result.msg_id,
            tags=message.tags,
            keys=message.keys_text,
            store_host=attempt.broker_addr,
            body_length=body_length(message.body),
            cost_ms=cost_ms,
            message_type=_type_of(message, result),
            offset_msg_id=result.offset_msg_id,
            success=result.status is SendStatus.SEND_OK,
        )


def _text(record: Record) -> str:
    match record:
        case PubTrace():
            return format_pub(record)
        case SubBeforeTrace():
            return format_sub_before(record)
        case SubAfterTrace():
            return format_sub_after(record)


def _type_of(message: Message, result: SendResult) -> TraceMessageType:
    if isinstance(result, TransactionSendResult):
        return TraceMessageType.TRANS_HALF
    return TraceMessageType.DELAY if message.is_delayed else TraceMessageType.NORMAL
