"""The producer of ``rocketmq.client``."""

import rmqtools
from rmqtools.compat.exceptions import (
    ProducerException,
    ProducerSendOnewayFailed,
    ProducerSendOrderlyFailed,
    ProducerSendSyncFailed,
    ProducerStartFailed,
    raised_as,
)
from rmqtools.compat.lifecycle import Startable
from rmqtools.compat.message import Message, Text, plain_message, to_text
from rmqtools.compat.settings import seconds
from rmqtools.compat.sharding import select_by_native_hash
from rmqtools.compat.status import SendResult, SendStatus, TraceModel, is_trace_open
from rmqtools.errors import ClientStateError

_STATUS = {status.name: status for status in SendStatus} | {"SEND_OK": SendStatus.OK}


class Producer(Startable[rmqtools.Producer]):
    """Sends messages; safe to share between threads.

    Args:
        group_id: name of the producer group.
        orderly: accepted; every producer can send in order.
        timeout: milliseconds for one send, all attempts together; None: 3000.
        compress_level: see :meth:`set_compress_level`.
        max_message_size: bytes of the largest body; None: 4 MiB.
    """

    _error = ProducerException

    def __init__(
        self,
        group_id: Text,
        orderly: bool = False,
        timeout: float | None = None,
        compress_level: int | None = None,
        max_message_size: int | None = None,
    ) -> None:
        super().__init__(group_id)
        self._timeout: float | None = None
        if timeout is not None:
            self.set_timeout(timeout)
        if compress_level is not None:
            self.set_compress_level(compress_level)
        if max_message_size is not None:
            self.set_max_message_size(max_message_size)

    def set_group(self, group_name: Text) -> None:
        """Set the name of the producer group."""
        self._set_group(group_name)

    def set_timeout(self, timeout: float) -> None:
        """Set the milliseconds for one send, all attempts together; also after the start."""
        self._timeout = seconds("timeout", timeout)

    def set_compress_level(self, level: int) -> None:
        """Set whether bodies of 4096 bytes or more are compressed: 0: no; other levels: zlib's default."""
        if level not in range(-1, 10):
            raise ValueError(f"compress level {level!r}: want 0 for none, 1 to 9, or -1")
        self._set("compression", "zlib" if level else "none")

    def set_max_message_size(self, max_size: int) -> None:
        """Set the bytes of the largest body that is sent."""
        self._set("max_message_bytes", max_size)

    def set_message_trace(self, message_trace: bool | TraceModel) -> None:
        """Set whether a trace record is sent for every message: True or TraceModel.OPEN."""
        self._set("enable_trace", is_trace_open(message_trace))

    def start(self) -> None:
        """Make the producer usable. No server is asked before the first send.

        Raises:
            ProducerStartFailed: a setting is not valid, or the producer was shut down.
        """
        if self._engine is not None:
            return
        if not self._is_new:
            raise ProducerStartFailed("the producer was shut down: make a new one")
        with raised_as(ProducerStartFailed):
            self._run(self._make(rmqtools.ProducerConfig(**self._known_settings())))

    def send_sync(self, msg: Message) -> SendResult:
        """Send a message and wait for the broker's answer.

        Raises:
            ProducerSendSyncFailed: it was not stored, or its outcome is unknown.
        """
        with raised_as(ProducerSendSyncFailed):
            return native_result(self._started.send(plain_message(msg), timeout=self._timeout))

    def send_oneway(self, msg: Message) -> None:
        """Write a message to a broker and wait for no answer.

        Raises:
            ProducerSendOnewayFailed: it was not written.
        """
        with raised_as(ProducerSendOnewayFailed):
            self._started.send_oneway(plain_message(msg))

    def send_orderly_with_sharding_key(self, msg: Message, sharding_key: Text) -> SendResult:
        """Send a message to the queue of a key, which is the native client's queue. One attempt only.

        Messages of one key stay in order if each is sent when the call before it has returned.

        Raises:
            ProducerSendOrderlyFailed: it was not stored, or its outcome is unknown.
        """
        with raised_as(ProducerSendOrderlyFailed):
            key = to_text("sharding key", sharding_key)
            message = plain_message(msg, key or None)
            sent = self._started.send(message, selector=select_by_native_hash, arg=key, timeout=self._timeout)
            return native_result(sent)

    def _make(self, config: rmqtools.ProducerConfig) -> rmqtools.Producer:
        return rmqtools.Producer(config)

    @property
    def _started(self) -> rmqtools.Producer:
        if self._engine is None:
            raise ClientStateError(
                "the producer is not started: call start()" if self._is_new else "the producer was shut down"
            )
        return self._engine


def native_result(result: rmqtools.SendResult) -> SendResult:
    """Return a send result as the native client has it."""
    return SendResult(_STATUS[result.status.name], result.msg_id, result.queue_offset)
