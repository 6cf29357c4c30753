"""Settings of the consumers; defaults are the Java client's and name its settings.

Source of the defaults: DefaultMQPushConsumer, DefaultLitePullConsumer (Java client 5.5.0).
"""

import os
from typing import Literal

from rmqtools.config.checked import checked
from rmqtools.config.client import ClientConfig
from rmqtools.config.text import require_positive
from rmqtools.errors import ConfigError
from rmqtools.model.group import ConsumeFromWhere, MessageModel
from rmqtools.model.record import record

_MIB = 1024 * 1024
_SHORTEST_POP, _LONGEST_POP = 5.0, 300.0  # DefaultMQPushConsumerImpl.popMessage


@checked
@record
class ConsumerConfig(ClientConfig):
    """Settings that push and pull consumers share. Times are seconds, sizes are bytes."""

    group: str = ""
    """Name of the consumer group; required, as upstream. Members with the same group share the messages.

    Set it to one name at all members of an application, and to another at every other application.
    """
    message_model: MessageModel | Literal["CLUSTERING", "BROADCASTING"] = MessageModel.CLUSTERING
    """CLUSTERING shares the messages among the members, BROADCASTING gives every member all of them.

    Default: as upstream (messageModel). Set BROADCASTING for caches that every member keeps itself.
    """
    consume_from: (
        ConsumeFromWhere
        | Literal["CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_TIMESTAMP"]
    ) = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    """First offset in a queue for a group without a stored offset; upstream consumeFromWhere.

    Set CONSUME_FROM_FIRST_OFFSET where a new group needs the old messages. Has no effect on a group that had
    a member before: reset its offsets instead.
    """
    consume_timestamp_ms: int | None = None
    """Start of CONSUME_FROM_TIMESTAMP, in milliseconds since 1970; upstream consumeTimestamp.

    Default None: half an hour before the consumer was started, as upstream.
    """
    rebalance_interval: float = 20.0
    """Seconds between two rebalances; upstream rocketmq.client.rebalance.waitInterval.

    Lower it where members of other clients come and go and brokers do not notify this member.
    """
    rebalance_min_interval: float = 1.0
    """Seconds between rebalances while this member still lacks queues of its share.

    Upstream rocketmq.client.rebalance.minInterval. Raise it where many members start together.
    """
    pin_poll_interval: float = 5.0
    """Seconds between checks for changed pins, with the strategy PINS only. Ours.

    Lower it if a changed pin must take effect sooner; each check is one request to every name server.
    """
    persist_consumer_offset_interval: float = 5.0
    """Seconds between two commits of offsets; upstream persistConsumerOffsetInterval.

    A member that is killed consumes up to this many seconds of messages again.
    """
    offset_store_path: str | os.PathLike[str] | None = None
    """File of the offsets of a broadcasting member.

    Default None: ``~/.rocketmq_offsets/CLIENT_ID/GROUP/offsets.json``, as upstream. Set it, or an
    ``instance_name``, where several members of a group run on one machine: they would share the file. Set it
    too where the home directory or the address of a machine changes with a restart.
    """
    pull_batch_size: int = 32
    """Messages that one pull asks for; upstream pullBatchSize.

    Brokers return 32 at most unless their maxTransferCountOnMessageInMemory is raised too.
    """
    pull_threshold_for_queue: int = 1000
    """Messages of one queue that are held in memory; pulling waits above. Upstream pullThresholdForQueue.

    Raise it where listeners take many messages at once, lower it to save memory.
    """
    pull_threshold_bytes_for_queue: int = 100 * _MIB
    """Bytes of bodies of one queue that are held in memory; upstream pullThresholdSizeForQueue.

    Lower it where messages are large and memory is small: a push consumer may hold this much for each of its
    queues, a pull consumer ``pull_threshold_bytes_for_all`` together.
    """
    pull_timeout: float = 30.0
    """Seconds for one pull, long poll included; upstream consumerTimeoutMillisWhenSuspend.

    Must be more than ``long_poll_timeout``: raise both together.
    """
    long_poll_timeout: float = 15.0
    """Seconds that a broker holds a pull that finds no message; upstream brokerSuspendMaxTimeMillis.

    Lower it where a proxy or a firewall cuts idle connections sooner.
    """
    delay_after_error: float = 3.0
    """Seconds until a failed pull is tried again; upstream pullTimeDelayMillsWhenException.

    Lower it where messages must flow again sooner after a broker restarts.
    """
    max_messages_per_second: float | None = None
    """Messages that this member fetches in a second, on average and of all its queues together. Ours.

    Default None: no limit. Set it if listeners use a service with a limited rate. The limiter delays
    fetching: the wait counts neither as listener time nor against ``pop_invisible_time``. After a pause
    every queue may return a batch at once; the next fetches then wait longer.
    """

    def __post_init__(self) -> None:
        super(ConsumerConfig, self).__post_init__()  # noqa: UP008 - slots make another class
        if not self.group:
            raise ConfigError("no group: set group='name', the same at all members that share the messages")
        require_positive(self, "rebalance_interval", "rebalance_min_interval", "pin_poll_interval")
        require_positive(self, "persist_consumer_offset_interval", "pull_batch_size", "pull_timeout")
        require_positive(self, "pull_threshold_for_queue", "pull_threshold_bytes_for_queue")
        require_positive(self, "long_poll_timeout", "delay_after_error")
        if self.max_messages_per_second is not None:
            require_positive(self, "max_messages_per_second")
        if self.pull_timeout <= self.long_poll_timeout:
            raise ConfigError(
                f"pull_timeout={self.pull_timeout}: want more than "
                f"long_poll_timeout={self.long_poll_timeout}, or every pull that waits times out"
            )

    @property
    def is_broadcasting(self) -> bool:
        """True if every member gets all messages."""
        return self.message_model == MessageModel.BROADCASTING


@checked
@record
class PushConsumerConfig(ConsumerConfig):
    """Settings of a push consumer. Times are seconds, sizes are bytes."""

    orderly: bool = False
    """Whether messages of a queue are consumed one after the other; upstream: the kind of the listener.

    Set it where the order of messages with one sharding key matters.
    """
    consume_threads: int = 20
    """Listeners that run at the same time; upstream consumeThreadMax.

    Raise it where listeners wait for other services.
    """
    consume_message_batch_max_size: int = 1
    """Messages that a listener gets at most in one call; upstream consumeMessageBatchMaxSize.

    Raise it where handling many messages at once is cheaper. A failure then repeats the whole batch.
    """
    consume_concurrently_max_span: int = 2000
    """Queue offsets from the first to the last message held of a queue; upstream consumeConcurrentlyMaxSpan.

    Pulling waits above: one message that takes long then stops its queue. Not used by ``orderly``.
    """
    pull_threshold_for_topic: int | None = None
    """Messages of all the member's queues that are held in memory, divided equally among its queues.

    Takes the place of ``pull_threshold_for_queue``; upstream pullThresholdForTopic. Default None: each queue
    has its own limit only. Set it where a member holds many queues.
    """
    pull_threshold_bytes_for_topic: int | None = None
    """Bytes of bodies of all the member's queues that are held in memory, divided equally among its queues.

    Takes the place of ``pull_threshold_bytes_for_queue``; upstream pullThresholdSizeForTopic. Default None:
    each queue has its own limit only. Set it where a member holds many queues. A queue gets 1 MiB or more.
    """
    max_reconsume_times: int = -1
    """Retries of a message before it becomes a dead letter; upstream maxReconsumeTimes.

    Default -1: 16 retries; with ``orderly`` no limit, so a message that always fails stops its queue.
    """
    consume_timeout: float = 900.0
    """Seconds after which a message whose listener has not returned is sent back for a retry.

    Upstream consumeTimeout (15 minutes). Raise it where listeners take longer. With ``orderly``, BROADCASTING
    and POP no message is sent back.
    """
    suspend_current_queue_time: float = 1.0
    """Seconds until ``orderly`` tries a failed batch again, 30 at most.

    Upstream suspendCurrentQueueTimeMillis. Raise it where a failure needs longer to go away; meanwhile the
    queue waits.
    """
    close_timeout: float = 30.0
    """Seconds that closing waits for running listeners.

    Ours: upstream awaitTerminationMillisWhenShutdown is 0. Raise it where listeners take longer and a
    message must not be handled twice because of a restart.
    """
    client_rebalance: bool = True
    """Whether members compute their shares of the queues themselves; upstream clientRebalance.

    Set it to False where brokers 5.x share them: brokers may then also distribute single messages (POP).
    Brokers do not deliver a popped stored batch (queue type BatchCQ) again when a member was killed, unless
    the topic ``%RETRY%group_topic`` was created with the attribute ``queue.type=BatchCQ``.
    """
    pop_invisible_time: float = 60.0
    """Seconds until an unacknowledged popped message is delivered again, 5 to 300.

    Upstream popInvisibleTime, where any other value counts as 60. Raise it where listeners take longer.
    """
    pop_batch_nums: int = 32
    """Messages that one pop asks for; upstream popBatchNums.

    Lower it where listeners are slow: messages that wait here too long are delivered again elsewhere.
    """
    pop_threshold_for_queue: int = 96
    """Popped messages of one queue that are held in memory; upstream popThresholdForQueue.

    Popping waits above. Lower it where listeners are slow, for the same reason.
    """
    enable_trace: bool = False
    """Whether records are sent before and after each listener call, for each message; upstream enableTrace.

    Set it where dashboards, ``mqadmin`` and ``rmqtools message story`` should show which member consumed a
    message, when and with which result. Each delivery adds two records of about 150 bytes to the trace topic.
    """
    trace_topic: str = "RMQ_SYS_TRACE_TOPIC"
    """Topic of the trace records; upstream traceTopic.

    Set it where traces of one application are kept apart. The member needs the permission to send there.
    """

    def __post_init__(self) -> None:
        super(PushConsumerConfig, self).__post_init__()  # noqa: UP008 - slots make another class
        require_positive(self, "consume_threads", "consume_message_batch_max_size", "consume_timeout")
        require_positive(self, "consume_concurrently_max_span", "suspend_current_queue_time", "close_timeout")
        require_positive(self, "pop_batch_nums", "pop_threshold_for_queue")
        if not _SHORTEST_POP <= self.pop_invisible_time <= _LONGEST_POP:
            raise ConfigError(f"pop_invisible_time={self.pop_invisible_time}: want 5 to 300 seconds")
        if self.max_reconsume_times < -1:
            raise ConfigError(f"max_reconsume_times={self.max_reconsume_times}: want 0 or more, or -1")
        for name in ("pull_threshold_for_topic", "pull_threshold_bytes_for_topic"):
            if getattr(self, name) is not None:
                require_positive(self, name)


@checked
@record
class PullConsumerConfig(ConsumerConfig):
    """Settings of a pull consumer, see :meth:`PullConsumer.poll`. Times are seconds, sizes are bytes."""

    auto_commit: bool = True
    """Whether ``poll`` commits what earlier calls have returned; upstream autoCommit.

    Set it to False, and call ``commit``, where messages count as consumed only after your own work. The group
    then has no stored offset before its first ``commit``.
    """
    auto_commit_interval: float = 5.0
    """Seconds between two automatic commits; upstream autoCommitIntervalMillis.

    Lower it to poll fewer messages again after a crash.
    """
    pull_threshold_for_all: int = 10_000
    """Messages of all queues together that are held in memory; pulling waits above.

    Upstream pullThresholdForAll. Lower it to save memory where messages are small and a member has many
    queues. Each queue may hold one answer more.
    """
    pull_threshold_bytes_for_all: int = 64 * _MIB
    """Bytes of bodies of all queues together that are held in memory; pulling waits above. Ours.

    A process with the default needs about 150 MiB. Raise it where a member has to fetch further ahead of its
    polls, lower it in smaller containers. Each queue may hold one answer more, of 256 KiB or one message.
    """
    poll_batch_size: int = 10
    """Messages that ``poll`` returns at most by default; upstream pullBatchSize of the lite consumer.

    Raise it where messages are small.
    """
    poll_timeout: float = 5.0
    """Seconds that ``poll`` waits for a message unless a timeout is given; upstream pollTimeoutMillis.

    Raise it where empty results are of no use.
    """

    def __post_init__(self) -> None:
        super(PullConsumerConfig, self).__post_init__()  # noqa: UP008 - slots make another class
        require_positive(self, "auto_commit_interval", "poll_batch_size", "poll_timeout")
        require_positive(self, "pull_threshold_for_all", "pull_threshold_bytes_for_all")
