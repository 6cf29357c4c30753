"""Updates a client's tables by a new route.

Source of the rule: MQClientInstance.updateTopicRouteInfoFromNameServer (Java client).

Host names of a route go through IDNA, which raises UnicodeError (not an OSError), and ``int`` refuses more
than 4,300 digits. Both must not end a client's loops, so a route is treated as untrusted input.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from rmqtools.model.queue import MessageQueue, java_order
from rmqtools.model.route import TopicRouteData
from rmqtools.policy.publish import (
    TopicPublishInfo,
    broker_addrs,
    publish_queues,
    static_endpoints,
    subscribe_queues,
    topic_route_changed,
)

DEFAULT_TOPIC = "TBW102"  # its route names the brokers that create a topic when it is first sent to


@dataclass(slots=True)
class RouteTables:
    """All routes that a client knows. An update replaces the brokers of its route, and keeps others."""

    routes: dict[str, TopicRouteData] = field(default_factory=dict)
    publish: dict[str, TopicPublishInfo] = field(default_factory=dict)
    subscribe: dict[str, list[MessageQueue]] = field(default_factory=dict)  # sorted
    endpoints: dict[MessageQueue, str] = field(default_factory=dict)
    broker_addrs: dict[str, Mapping[int, str]] = field(default_factory=dict)

    def update(self, topic: str, route: TopicRouteData, *, publish_needed: bool = False) -> bool:
        """Store a topic's route from the name server.

        Args:
            topic: the topic that the route is stored for.
            route: the route; if it is the default topic's, see :func:`as_default_route`.
            publish_needed: update although nothing has changed, because the producer has no queue.

        Returns:
            Whether the tables were changed.

        Raises:
            ProtocolError: the route cannot be used; no table has changed.
        """
        if not topic_route_changed(self.routes.get(topic), route) and not publish_needed:
            return False
        info = replace(publish_queues(topic, route), have_topic_router_info=True)
        subscribe = _sorted(subscribe_queues(topic, info.route))
        endpoints = static_endpoints(topic, route)
        self.broker_addrs.update(broker_addrs(route))
        self.endpoints.update(endpoints)
        self.publish[topic] = info
        self.routes[topic] = info.route
        self.subscribe[topic] = subscribe
        return True

    def forget_offline_brokers(self) -> None:
        """Remove the addresses of brokers that no known route names.

        Source of the rule: MQClientInstance.cleanOfflineBroker (Java client).
        """
        named = {data.broker_name for route in self.routes.values() for data in route.broker_datas}
        self.broker_addrs = {name: addrs for name, addrs in self.broker_addrs.items() if name in named}

    def needs_publish_update(self, topic: str) -> bool:
        """Return whether the producer has no queue of the topic yet."""
        info = self.publish.get(topic)
        return info is None or not info.ok


def _sorted(queues: Collection[MessageQueue]) -> list[MessageQueue]:
    """Return the queues of one topic in their order. Texts are compared per broker, not per queue."""
    names = sorted({queue.broker_name for queue in queues}, key=java_order)
    places = {name: place for place, name in enumerate(names)}
    return sorted(queues, key=lambda queue: (places[queue.broker_name], queue.queue_id))


def as_default_route(route: TopicRouteData, default_topic_queue_nums: int) -> TopicRouteData:
    """Reduce the default topic's route to the queues that a topic created from it will have."""
    datas = tuple(
        replace(data, read_queue_nums=nums, write_queue_nums=nums)
        for data in route.queue_datas
        for nums in (min(default_topic_queue_nums, data.read_queue_nums),)
    )
    return replace(route, queue_datas=datas)
