"""Settings of the consumers; defaults equal the Java client's and cite it.

Source of the defaults: DefaultMQPushConsumer, DefaultLitePullConsumer (Java client 5.5.0).
"""

from dataclasses import dataclass

from rmqtools.config import ClientConfig, require_positive
from rmqtools.errors import ConfigError
from rmqtools.model.group import ConsumeFromWhere, MessageModel

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConfig(ClientConfig):
    """What the consumers have in common. Times are seconds."""

    group: str = ""  # required
    message_model: MessageModel = MessageModel.CLUSTERING
    consume_from: ConsumeFromWhere = (
        ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    )  # of a group without offset; upstream consumeFromWhere
    consume_timestamp_ms: int | None = None  # of CONSUME_FROM_TIMESTAMP; None: half an hour before the start
    rebalance_interval: float = 20.0  # upstream rocketmq.client.rebalance.waitInterval
    rebalance_min_interval: float = (
        1.0  # while queues are not yet shared as they should be; upstream ...minInterval
    )
    pin_poll_interval: float = 5.0  # how often changed pins are looked for, by the strategy PINS; ours
    persist_consumer_offset_interval: float = 5.0  # upstream persistConsumerOffsetInterval
    offset_store_path: str | None = (
        None  # broadcasting: None: ~/.rocketmq_offsets/CLIENT_ID/GROUP/offsets.json, as upstream
    )
    pull_batch_size: int = 32  # messages a pull asks for; upstream pullBatchSize
    pull_threshold_for_queue: int = 1000  # messages held of one queue; upstream pullThresholdForQueue
    pull_threshold_bytes_for_queue: int = (
        100 * _MIB
    )  # the same in bytes of bodies; upstream pullThresholdSizeForQueue
    pull_timeout: float = 30.0  # of one pull, long poll included; upstream consumerTimeoutMillisWhenSuspend
    long_poll_timeout: float = (
        15.0  # how long a broker holds a pull that finds nothing; upstream brokerSuspendMaxTimeMillis
    )
    delay_after_error: float = (
        3.0  # until a failed pull is tried again; upstream pullTimeDelayMillsWhenException
    )

    def __post_init__(self) -> None:
        super(ConsumerConfig, self).__post_init__()
        if not self.group:
            raise ConfigError("no group: set group='name', the same at all members that share the messages")
        for name, kind in (("message_model", MessageModel), ("consume_from", ConsumeFromWhere)):
            _require_member(self, name, kind)
        require_positive(self, "rebalance_interval", "rebalance_min_interval", "pin_poll_interval")
        require_positive(self, "persist_consumer_offset_interval", "pull_batch_size", "pull_timeout")
        require_positive(self, "pull_threshold_for_queue", "pull_threshold_bytes_for_queue")
        require_positive(self, "long_poll_timeout", "delay_after_error")
        if self.pull_timeout <= self.long_poll_timeout:
            raise ConfigError(
                f"pull_timeout={self.pull_timeout}: want more than "
                f"long_poll_timeout={self.long_poll_timeout}, or every pull that waits times out"
            )

    @property
    def is_broadcasting(self) -> bool:
        """Whether every member gets all messages."""
        return self.message_model == MessageModel.BROADCASTING


@dataclass(frozen=True, slots=True, kw_only=True)
class PushConsumerConfig(ConsumerConfig):
    """How messages are handed to listeners. Times are seconds."""

    orderly: bool = False  # one message of a queue after the other; upstream: the kind of the listener
    consume_threads: int = 20  # listeners that run at once; upstream consumeThreadMax
    consume_message_batch_max_size: int = 1  # messages a listener gets at once; same name upstream
    consume_concurrently_max_span: int = (
        2000  # offsets between the first and last message held; same name upstream
    )
    pull_threshold_for_topic: int | None = None  # messages held of all queues of a topic; same name upstream
    pull_threshold_bytes_for_topic: int | None = None  # upstream pullThresholdSizeForTopic
    max_reconsume_times: int = -1  # -1: 16, orderly: without end; same name upstream
    consume_timeout: float = (
        900.0  # a message whose listener takes longer is sent back for another try; same name upstream
    )
    suspend_current_queue_time: float = (
        1.0  # orderly: until a failed batch is tried again; upstream suspendCurrentQueueTimeMillis
    )
    close_timeout: float = 30.0  # given to listeners under way when the consumer closes; ours
    client_rebalance: bool = (
        True  # False: brokers share the queues out, and may hand out messages (POP); same name upstream
    )
    pop_invisible_time: float = 60.0  # a popped message not acknowledged comes again; same name upstream
    pop_batch_nums: int = 32  # messages a pop asks for; same name upstream
    pop_threshold_for_queue: int = 96  # popped messages held of one queue; same name upstream

    def __post_init__(self) -> None:
        super(PushConsumerConfig, self).__post_init__()
        require_positive(self, "consume_threads", "consume_message_batch_max_size", "consume_timeout")
        require_positive(self, "consume_concurrently_max_span", "suspend_current_queue_time", "close_timeout")
        require_positive(self, "pop_invisible_time", "pop_batch_nums", "pop_threshold_for_queue")
        if self.max_reconsume_times < -1:
            raise ConfigError(f"max_reconsume_times={self.max_reconsume_times}: want 0 or more, or -1")
        for name in ("pull_threshold_for_topic", "pull_threshold_bytes_for_topic"):
            if getattr(self, name) is not None:
                require_positive(self, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class PullConsumerConfig(ConsumerConfig):
    """How messages are fetched for :meth:`PullConsumer.poll`. Times are seconds."""

    auto_commit: bool = True  # commit what poll has handed out before; same name upstream
    auto_commit_interval: float = 5.0  # upstream autoCommitIntervalMillis
    poll_batch_size: int = 10  # messages poll returns at most; upstream pullBatchSize of the lite consumer
    poll_timeout: float = 5.0  # upstream pollTimeoutMillis

    def __post_init__(self) -> None:
        super(PullConsumerConfig, self).__post_init__()
        require_positive(self, "auto_commit_interval", "poll_batch_size", "poll_timeout")


def _require_member(config: object, name: str, kind: type[MessageModel] | type[ConsumeFromWhere]) -> None:
    """Turn a text into the member it names."""
    value = getattr(config, name)
    known = [str(member) for member in kind]
    if value not in known:
        raise ConfigError(f"{name}={value!r}: want one of {', '.join(known)}")
    object.__setattr__(config, name, kind(value))
