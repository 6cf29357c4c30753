"""Makes the queues to publish to, and those to subscribe to, from a topic's route.

Source of the rules: MQClientInstance.topicRouteData2TopicPublishInfo, topicRouteData2TopicSubscribeInfo and
topicRouteData2EndpointsForStaticTopic, TopicRouteData.topicRouteDataChanged (Java client).

``order_topic_conf`` None and "" differ. With "", a static topic's mapping is used for reading, and not for
sending.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from rmqtools.errors import ProtocolError
from rmqtools.model.queue import MessageQueue
from rmqtools.model.record import record
from rmqtools.model.route import MASTER_ID, BrokerData, TopicQueueMapping, TopicRouteData

STATIC_BROKER_PREFIX = "__syslo__"
STATIC_BROKER_ABSENT = "__syslo__none__"
_GLOBAL_SCOPE = "__global__"
_COUNT = re.compile(r"\+?0*([0-9]{1,10})")
_MAX_COUNT = 2**31 - 1
MAX_QUEUES_PER_BROKER = 65_536  # of a topic; upstream has no limit
MAX_QUEUES_PER_TOPIC = (
    2 * MAX_QUEUES_PER_BROKER
)  # of all brokers: each takes memory in several tables, and time


@record(kw_only=False)
class TopicPublishInfo:
    """The queues of a topic that messages may be sent to, in round-robin order.

    ``route`` is its route, with queue datas sorted by broker name, except for ordered and static topics, as
    in Java.
    """

    queues: tuple[MessageQueue, ...]
    route: TopicRouteData
    order_topic: bool = False
    have_topic_router_info: bool = False

    @property
    def ok(self) -> bool:
        """True if there is at least one queue."""
        return bool(self.queues)


def publish_queues(topic: str, route: TopicRouteData) -> TopicPublishInfo:
    """Build the list of queues to publish to.

    An ``order_topic_conf`` that is not empty decides, in its own order. A static mapping decides only if
    ``order_topic_conf`` is None. Otherwise: every writable queue of each broker that has a master.

    Raises:
        ProtocolError: an ``order_topic_conf`` that cannot be read, or more queues than the limits above.
    """
    if route.order_topic_conf:
        return TopicPublishInfo(
            tuple(_ordered_queues(topic, route.order_topic_conf)), route, order_topic=True
        )
    if route.order_topic_conf is None and route.topic_queue_mapping_by_broker:
        queues = sorted(static_endpoints(topic, route), key=lambda queue: queue.queue_id)
        return TopicPublishInfo(tuple(queues), route)
    by_name = tuple(sorted(route.queue_datas, key=lambda data: data.broker_name))
    route = replace(route, queue_datas=by_name)
    return TopicPublishInfo(tuple(_writable_queues(topic, route)), route)


def subscribe_queues(topic: str, route: TopicRouteData) -> frozenset[MessageQueue]:
    """Build the set of queues to read from. They need the read permission, but no master.

    Raises:
        ProtocolError: more queues than the limits above.
    """
    if route.topic_queue_mapping_by_broker:
        return frozenset(static_endpoints(topic, route))
    readable = [data for data in route.queue_datas if data.is_readable]
    _check_counts(topic, (data.read_queue_nums for data in readable))
    return frozenset(
        MessageQueue(topic, data.broker_name, queue_id)
        for data in readable
        for queue_id in range(data.read_queue_nums)
    )


def broker_addrs(route: TopicRouteData) -> dict[str, Mapping[int, str]]:
    """Return the addresses of each broker set by its name. Of two broker datas of one name the first counts.

    Source of the rule: MQClientInstance.topicRouteData2TopicPublishInfo. Ours: the addresses are those of the
    same broker data; in Java the last one's, so that a queue could be offered whose master has no address.
    """
    return {data.broker_name: data.broker_addrs for data in reversed(route.broker_datas)}


def static_endpoints(topic: str, route: TopicRouteData) -> dict[MessageQueue, str]:
    """Map each logic queue of a static topic to the broker that serves it now.

    If two brokers claim a queue, the higher epoch wins. A queue that no broker claims is mapped to
    :data:`STATIC_BROKER_ABSENT`.

    Raises:
        ProtocolError: more queues than the limits above.
    """
    scopes: dict[str, list[TopicQueueMapping]] = {}
    for mapping in (route.topic_queue_mapping_by_broker or {}).values():
        scopes.setdefault(mapping.scope, []).append(mapping)
    _check_counts(topic, map(_total_queues, scopes.values()))
    return {
        MessageQueue(topic, _static_broker_name(scope), queue_id): broker_name
        for scope, mappings in scopes.items()
        for queue_id, broker_name in _owners(mappings).items()
    }


def topic_route_changed(old: TopicRouteData | None, new: TopicRouteData) -> bool:
    """Return whether routes differ in parts that clients use: not in the order of lists, cluster, zone."""
    return old is None or (old != new and _comparable(old) != _comparable(new))


def _ordered_queues(topic: str, order_topic_conf: str) -> Iterator[MessageQueue]:
    """``broker-a:4;broker-b:2``: queues 0..3 of the first, then 0..1 of the second."""
    counts: list[tuple[str, int]] = []
    for part in _java_split(order_topic_conf, ";"):
        broker_name, *rest = _java_split(part, ":")
        if not rest or (count := _queue_count(rest[0])) is None:
            raise ProtocolError(
                f"orderTopicConf {order_topic_conf!r:.200} of topic {topic!r}: want broker:queues;..."
            )
        counts.append((broker_name, count))
    _check_counts(topic, (count for _, count in counts))
    for broker_name, count in counts:
        for queue_id in range(count):
            yield MessageQueue(topic, broker_name, queue_id)


def _check_counts(topic: str, counts: Iterable[int]) -> None:
    """Refuse more queues than a client lists, before any of them is made."""
    total = 0
    for count in counts:
        total += max(0, count)
        if count > MAX_QUEUES_PER_BROKER or total > MAX_QUEUES_PER_TOPIC:
            raise ProtocolError(
                f"the route of topic {topic!r} has {max(count, total)} queues: at most "
                f"{MAX_QUEUES_PER_BROKER} on a broker and {MAX_QUEUES_PER_TOPIC} in total are listed; see "
                "the topic's route and at the name server's ORDER_TOPIC_CONFIG"
            )


def _queue_count(text: str) -> int | None:
    """Return a number as Java's parseInt reads it; None: no number, negative, or too large for 32 bits."""
    digits = _COUNT.fullmatch(text)
    count = int(digits[1]) if digits else _MAX_COUNT + 1
    return count if count <= _MAX_COUNT else None


def _java_split(text: str, separator: str) -> list[str]:
    """Split as Java's String.split: drops empty parts at the end, and returns an empty text as one part."""
    parts = text.split(separator)
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts


def _writable_queues(topic: str, route: TopicRouteData) -> Iterator[MessageQueue]:
    addrs = broker_addrs(route)
    writable = [
        data
        for data in route.queue_datas
        if data.is_writable and MASTER_ID in addrs.get(data.broker_name, ())
    ]
    _check_counts(topic, (data.write_queue_nums for data in writable))
    for data in writable:
        for queue_id in range(data.write_queue_nums):
            yield MessageQueue(topic, data.broker_name, queue_id)


def is_static(queue: MessageQueue) -> bool:
    """Return whether a queue is a logic queue of a static topic, which brokers may move."""
    return queue.broker_name.startswith(STATIC_BROKER_PREFIX)


def _static_broker_name(scope: str) -> str:
    return STATIC_BROKER_PREFIX + (scope[2:] if scope == _GLOBAL_SCOPE else scope)


def _total_queues(mappings: Iterable[TopicQueueMapping]) -> int:
    return max((mapping.total_queues for mapping in mappings), default=0)


def _owners(mappings: list[TopicQueueMapping]) -> dict[int, str]:
    """Queue id -> broker name within one scope, gaps filled with "absent"."""
    newest_first = sorted(mappings, key=lambda mapping: -mapping.epoch)
    total = _total_queues(newest_first)
    owner: dict[int, TopicQueueMapping] = {}
    for mapping in newest_first:
        for queue_id in mapping.curr_id_map or {}:
            if queue_id not in owner or owner[queue_id].epoch <= mapping.epoch:
                owner[queue_id] = mapping
    absent = dict.fromkeys(range(total), STATIC_BROKER_ABSENT)
    return absent | {queue_id: mapping.broker_name for queue_id, mapping in owner.items() if queue_id < total}


def _comparable(route: TopicRouteData) -> tuple[object, ...]:
    def addresses(data: BrokerData) -> tuple[str, tuple[tuple[int, str], ...]]:
        return data.broker_name, tuple(sorted(data.broker_addrs.items()))

    return (
        route.order_topic_conf,
        sorted(route.queue_datas, key=lambda data: data.broker_name),
        sorted((addresses(data) for data in route.broker_datas), key=lambda pair: pair[0]),
        dict(route.filter_server_table or {}),
        None if route.topic_queue_mapping_by_broker is None else dict(route.topic_queue_mapping_by_broker),
    )
