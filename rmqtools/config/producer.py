"""Settings of producers; defaults are the Java client's and name its settings.

Source of the defaults: DefaultMQProducer (Java client 5.5.0).
"""

from typing import Literal

from rmqtools.config.checked import checked
from rmqtools.config.client import ClientConfig
from rmqtools.config.text import require_positive
from rmqtools.errors import ConfigError
from rmqtools.model.record import record


@checked
@record
class ProducerConfig(ClientConfig):
    """Settings of a producer. Times are seconds, sizes are bytes."""

    group: str = "DEFAULT_PRODUCER"
    """Name of the producer group; upstream MixAll.DEFAULT_PRODUCER_GROUP.

    Set it for transactions: brokers ask any member of the group about open transactions.
    """
    send_timeout: float = 3.0
    """Seconds for one send, all attempts together; upstream sendMsgTimeout.

    Raise it where brokers wait for slow disks or replicas.
    """
    retry_times_when_send_failed: int = 2
    """Attempts after the first one; upstream retryTimesWhenSendFailed.

    Set it to 0 where a message must not be stored twice, and handle the errors yourself.
    """
    retry_another_broker_when_not_store_ok: bool = False
    """Whether an answer such as FLUSH_DISK_TIMEOUT is tried again at another broker.

    Upstream retryAnotherBrokerWhenNotStoreOK. The first broker keeps the message, so a retry stores it twice.
    """
    send_latency_fault_enable: bool = False
    """Whether brokers that answer slowly or not at all are avoided; upstream sendLatencyFaultEnable.

    Set it where single brokers of a large cluster become slow.
    """
    start_detector_enable: bool = False
    """Whether avoided brokers are probed and come back as soon as they answer; upstream startDetectorEnable.

    Has an effect only with ``send_latency_fault_enable``.
    """
    max_message_bytes: int = 4 * 1024 * 1024
    """Bytes of the largest body that is sent; upstream maxMessageSize.

    Raise it together with maxMessageSize of the brokers.
    """
    compress_over_bytes: int = 4096
    """Bodies of this many bytes or more are compressed; upstream compressMsgBodyOverHowmuch.

    Lower it to save network and disk, raise it to save CPU.
    """
    compression: Literal["zlib", "lz4", "zstd", "none"] = "zlib"
    """How bodies are compressed: zlib, lz4, zstd or none; upstream compressType.

    Use lz4 or zstd to save CPU where all consumers are of version 5 or newer, and none for compressed data.
    """
    max_batch_bytes: int = 256 * 1024
    """Bytes of one batch on the wire that ``send_many`` makes. Ours: upstream leaves batches to the caller.

    Larger batches cost brokers less CPU a message; a broker refuses batches above its maxMessageSize.
    """
    max_in_flight: int = 16
    """Requests of one ``send_many``, or of one series of batches, that may be without an answer. Ours.

    Raise it only if there are more queues than this: each queue has one request at a time.
    """
    linger: float = 0.0
    """Seconds that a message of ``send`` or ``send_async`` may wait for others to share its request; 0: none.

    Upstream autoBatch and batchMaxDelayMs, which is 10 ms where autoBatch is on. Set it, e.g. to 0.005, where
    many messages to a topic are in flight at the same time and each has its own call. Nothing waits while
    no request of its topic is on the wire.
    """
    batch_bytes: int = 32 * 1024
    """Bytes of messages that share a request because of ``linger``; upstream batchMaxBytes.

    Raise it where very many messages are in flight. Has no effect without ``linger``, nor on ``send_many``.
    """
    inner_batches: bool = False
    """Send batches in the form that brokers 5.x store as one message, in topics of the queue type BatchCQ.

    The broker then needs a fifth of the processor time for bodies of 100 bytes, and half for 1 KB. Java's
    producers always use this form. Set it for such topics, and read first what they lack: docs/tune.md.
    The producer asks the broker for the topic's queue type, at most once a minute (GET_TOPIC_CONFIG).
    """
    enable_backpressure_for_async_mode: bool = False
    """Bound the messages and bytes in flight by the next two settings.

    Upstream enableBackpressureForAsyncMode. Set it where a program makes messages faster than the network
    takes them: without a bound they fill the memory. Counts the messages of ``send_async``, of
    ``send_orderly``, and of ``send`` of ``rmqtools.aio``. A blocking ``send`` is not counted: its thread
    waits for it.
    """
    back_pressure_for_async_send_num: int = 1024
    """Messages that may be in flight; upstream backPressureForAsyncSendNum.

    Lower it where your program keeps other data for each message in flight. Has an effect only with
    ``enable_backpressure_for_async_mode``, as the next two settings.
    """
    back_pressure_for_async_send_size: int = 100 * 1024 * 1024
    """Bytes of bodies that may be in flight; upstream backPressureForAsyncSendSize.

    Lower it where memory is scarce. A larger body is sent alone.
    """
    back_pressure_waits: bool = True
    """Let a send above the bound wait for room, within its own timeout. Upstream always waits.

    False: the send fails at once with BackPressureError. Set that where the caller must not be held up.
    """
    enable_trace: bool = False
    """Whether a trace record is sent for every message stored; upstream enableTrace.

    Set it where dashboards should show the way of messages; brokers must have ``trace_topic``.
    """
    trace_topic: str = "RMQ_SYS_TRACE_TOPIC"
    """Topic of the trace records; upstream traceTopic.

    Set it where traces of one application are kept apart.
    """
    check_thread_pool_max_size: int = 1
    """Transaction checks that run at the same time; upstream checkThreadPoolMaxSize.

    Raise it where answering a check takes long, such as a query in a database.
    """
    check_request_hold_max: int = 2000
    """Transaction checks that may run or wait; upstream checkRequestHoldMax.

    Checks above it are dropped, and brokers ask again. Raise it where very many transactions stay open.
    """

    def __post_init__(self) -> None:
        super(ProducerConfig, self).__post_init__()  # noqa: UP008 - slots make another class
        require_positive(self, "send_timeout", "max_message_bytes", "max_batch_bytes", "max_in_flight")
        require_positive(self, "back_pressure_for_async_send_num", "back_pressure_for_async_send_size")
        require_positive(self, "batch_bytes", "check_thread_pool_max_size", "check_request_hold_max")
        if self.retry_times_when_send_failed < 0:
            raise ConfigError(
                f"retry_times_when_send_failed={self.retry_times_when_send_failed}: want 0 or more"
            )
        self._check_linger()

    def _check_linger(self) -> None:
        if not 0 <= self.linger < self.send_timeout:
            raise ConfigError(
                f"linger={self.linger}: want 0 or more, and less than send_timeout={self.send_timeout}"
            )
        if self.linger and self.batch_bytes > self.max_message_bytes:
            raise ConfigError(
                f"batch_bytes={self.batch_bytes}: want at most max_message_bytes={self.max_message_bytes}, "
                "which brokers apply to a whole batch"
            )
