"""Settings of the simple consumer, which receives and acknowledges single messages.

Source of the defaults: DefaultMQPushConsumer (Java client 5.5.0) where it has the setting.
"""

from typing import Literal

from rmqtools.config.checked import checked
from rmqtools.config.client import ClientConfig
from rmqtools.config.text import is_within, require_positive
from rmqtools.errors import ConfigError
from rmqtools.model.group import ConsumeFromWhere
from rmqtools.model.record import record

MOST_MESSAGES = 32  # of one answer; brokers refuse to pop more (PopMessageProcessor)
SHORTEST_INVISIBLE, LONGEST_INVISIBLE = 1.0, 12 * 3600.0  # seconds; the longest is that of proxies


@checked
@record
class SimpleConsumerConfig(ClientConfig):
    """Settings of :class:`rmqtools.SimpleConsumer`. Times are seconds."""

    group: str = ""
    """Name of the consumer group; required. Members with the same group share the messages.

    Use a group that has no push or pull consumers: they would leave this member a share of the queues.
    """
    consume_from: ConsumeFromWhere | Literal["CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_FIRST_OFFSET"] = (
        ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    )
    """First offset in a queue for a group that never received from it; upstream consumeFromWhere.

    Set CONSUME_FROM_FIRST_OFFSET where a new group needs the old messages. CONSUME_FROM_TIMESTAMP is refused:
    brokers do not offer it to popping consumers.
    """
    fifo: bool = False
    """Receive the messages of each queue in order; upstream FIFO groups.

    A queue then gives no message until all messages of its last answer are acknowledged, or their invisible
    time ends. Set it at all members of the group, and send with ``send_orderly``.
    """
    max_messages: int = 32
    """Messages that ``receive`` returns at most by default: 1 to 32; upstream popBatchNums.

    Lower it where a message takes long: the invisible time begins for all of them at once.
    """
    invisible_duration: float = 60.0
    """Seconds until a received message that was not acknowledged comes again; upstream popInvisibleTime.

    1 second to 12 hours. Raise it where the work on a message takes longer.
    """
    wait: float = 15.0
    """Seconds that ``receive`` waits for a message by default.

    Upstream brokerSuspendMaxTimeMillis. Lower it where a firewall cuts idle connections sooner.
    """
    max_reconsume_times: int = -1
    """Deliveries of a message after its first; then it becomes a dead letter. Upstream maxReconsumeTimes.

    Default -1: 16.
    """

    def __post_init__(self) -> None:
        super(SimpleConsumerConfig, self).__post_init__()  # noqa: UP008 - slots make another class
        if not self.group:
            raise ConfigError("no group: set group='name', the same at all members that share the messages")
        if self.consume_from == ConsumeFromWhere.CONSUME_FROM_TIMESTAMP:
            raise ConfigError(
                "consume_from='CONSUME_FROM_TIMESTAMP': want one of CONSUME_FROM_LAST_OFFSET, "
                "CONSUME_FROM_FIRST_OFFSET: brokers offer popping consumers no other"
            )
        if self.max_reconsume_times < -1:
            raise ConfigError(f"max_reconsume_times={self.max_reconsume_times}: want 0 or more, or -1")
        require_positive(self, "wait")
        check_receive(self.max_messages, self.invisible_duration, self.wait)


def check_receive(max_messages: int, invisible_duration: float, wait: float) -> None:
    """Check the arguments of a receive.

    Raises:
        ConfigError: one that brokers would refuse, or take for something else.
    """
    if not is_within(max_messages, 1, MOST_MESSAGES):
        raise ConfigError(
            f"max_messages={max_messages!r}: want 1 to {MOST_MESSAGES}, the most that brokers return at once"
        )
    check_invisible("invisible_duration", invisible_duration)
    if not is_within(wait, 0, LONGEST_INVISIBLE):
        raise ConfigError(f"wait={wait!r}: want 0 seconds to 12 hours (43200)")


def check_invisible(name: str, seconds: float) -> None:
    """Check an invisible time.

    Raises:
        ConfigError: too short, or too long.
    """
    if not is_within(seconds, SHORTEST_INVISIBLE, LONGEST_INVISIBLE):
        raise ConfigError(f"{name}={seconds!r}: want 1 second to 12 hours (43200)")
