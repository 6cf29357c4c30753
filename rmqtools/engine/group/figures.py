"""The figures of a consumer for telemetry: queues, lag, cached messages."""

from collections import Counter

from rmqtools.engine.group.member import Member
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX
from rmqtools.observer import ConsumerFigures


def consumer_figures(member: Member, *, rebalances: int) -> ConsumerFigures:
    """Read a member's state. The lag of popped queues is unknown to their members."""
    queues: Counter[str] = Counter(queue.topic for queue in member.held.queues())
    lag: Counter[str] = Counter()
    working = member.held.working()
    for held in working:
        lag[held.queue.topic] += held.lag
    return ConsumerFigures(
        queues=_plain(member, queues),
        lag=_plain(member, lag),
        cached_messages=sum(held.count for held in working),
        cached_bytes=sum(held.cached_bytes for held in working),
        rebalances=rebalances,
    )


def _plain(member: Member, counts: Counter[str]) -> dict[str, int]:
    """Plain topic names; the retry topic of the group keeps its prefix."""
    names = member.names
    return {
        topic if topic.startswith(RETRY_GROUP_TOPIC_PREFIX) else names.plain_topic(topic): count
        for topic, count in counts.items()
    }
