"""From a topic's route to the queues to publish to and to subscribe to.

Source of the rules: MQClientInstance.topicRouteData2TopicPublishInfo, topicRouteData2TopicSubscribeInfo and
topicRouteData2EndpointsForStaticTopic, TopicRouteData.topicRouteDataChanged (Java client).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rmqtools.errors import ProtocolError
from rmqtools.model.queue import MessageQueue
from rmqtools.model.route import MASTER_ID, BrokerData, TopicQueueMapping, TopicRouteData

STATIC_BROKER_PREFIX = "__syslo__"
STATIC_BROKER_ABSENT = "__syslo__none__"
_GLOBAL_SCOPE = "__global__"


@dataclass(frozen=True, slots=True)
class TopicPublishInfo:
    """The queues of a topic that messages may be sent to, in the order round-robin walks them.

    ``route`` is the route it was made from; its queue datas are sorted by broker name, except for ordered
    and static topics, as Java leaves them.
    """

    queues: tuple[MessageQueue, ...]
    route: TopicRouteData
    order_topic: bool = False
    have_topic_router_info: bool = False

    @property
    def ok(self) -> bool:
        """Whether there is a queue at all."""
        return bool(self.queues)

    def write_queue_nums(self, broker_name: str) -> int:
        """How many write queues the broker has for the topic; -1 when the route does not name it."""
        datas = (data for data in self.route.queue_datas if data.broker_name == broker_name)
        return next((data.write_queue_nums for data in datas), -1)


def publish_queues(topic: str, route: TopicRouteData) -> TopicPublishInfo:
    """Build the list of queues to publish to.

    An ``order_topic_conf`` that is not empty wins and keeps its own order; a static mapping counts only
    when there is no ``order_topic_conf`` at all; else every writable queue of each broker that has a master.

    Raises:
        ProtocolError: an ``order_topic_conf`` that cannot be read.
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
    """Build the set of queues to read from: the read bit is enough, no master is needed."""
    if route.topic_queue_mapping_by_broker:
        return frozenset(static_endpoints(topic, route))
    return frozenset(
        MessageQueue(topic, data.broker_name, queue_id)
        for data in route.queue_datas
        if data.is_readable
        for queue_id in range(data.read_queue_nums)
    )


def static_endpoints(topic: str, route: TopicRouteData) -> dict[MessageQueue, str]:
    """Map each logic queue of a static topic to the broker that serves it now.

    Of two brokers that claim a queue the one with the higher epoch has it; a queue nobody claims is mapped to
    :data:`STATIC_BROKER_ABSENT`.
    """
    scopes: dict[str, list[TopicQueueMapping]] = {}
    for mapping in (route.topic_queue_mapping_by_broker or {}).values():
        scopes.setdefault(mapping.scope, []).append(mapping)
    return {
        MessageQueue(topic, _static_broker_name(scope), queue_id): broker_name
        for scope, mappings in scopes.items()
        for queue_id, broker_name in _owners(mappings).items()
    }


def topic_route_changed(old: TopicRouteData | None, new: TopicRouteData) -> bool:
    """Whether a route differs in what clients use: lists in any order; cluster and zone do not count."""
    return old is None or (old != new and _comparable(old) != _comparable(new))


def _ordered_queues(topic: str, order_topic_conf: str) -> Iterator[MessageQueue]:
    """``broker-a:4;broker-b:2``: queues 0..3 of the first, then 0..1 of the second."""
    for part in _java_split(order_topic_conf, ";"):
        broker_name, *rest = _java_split(part, ":")
        if not rest or not rest[0].removeprefix("+").isdecimal():
            raise ProtocolError(
                f"orderTopicConf {order_topic_conf!r} of topic {topic!r}: want broker:queues;..."
            )
        for queue_id in range(int(rest[0])):
            yield MessageQueue(topic, broker_name, queue_id)


def _java_split(text: str, separator: str) -> list[str]:
    """Java's String.split drops empty parts at the end, and gives the text itself when it is empty."""
    parts = text.split(separator)
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts


def _writable_queues(topic: str, route: TopicRouteData) -> Iterator[MessageQueue]:
    with_master = {data.broker_name for data in route.broker_datas if MASTER_ID in data.broker_addrs}
    for data in route.queue_datas:
        if data.is_writable and data.broker_name in with_master:
            for queue_id in range(data.write_queue_nums):
                yield MessageQueue(topic, data.broker_name, queue_id)


def _static_broker_name(scope: str) -> str:
    return STATIC_BROKER_PREFIX + (scope[2:] if scope == _GLOBAL_SCOPE else scope)


def _owners(mappings: list[TopicQueueMapping]) -> dict[int, str]:
    """Queue id -> broker name within one scope, gaps filled with "absent"."""
    newest_first = sorted(mappings, key=lambda mapping: -mapping.epoch)
    total = max((mapping.total_queues for mapping in newest_first), default=0)
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
