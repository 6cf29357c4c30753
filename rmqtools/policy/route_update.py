"""What a fresh route changes in a client's tables.

Source of the rule: MQClientInstance.updateTopicRouteInfoFromNameServer (Java client).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter

from rmqtools.model.queue import MessageQueue
from rmqtools.model.route import TopicRouteData
from rmqtools.policy.publish import (
    TopicPublishInfo,
    publish_queues,
    static_endpoints,
    subscribe_queues,
    topic_route_changed,
)

DEFAULT_TOPIC = "TBW102"  # its route says where a topic may be created by sending to it


@dataclass(slots=True)
class RouteTables:
    """All a client knows about where topics are. An update only puts addresses."""

    routes: dict[str, TopicRouteData] = field(default_factory=dict)
    publish: dict[str, TopicPublishInfo] = field(default_factory=dict)
    subscribe: dict[str, list[MessageQueue]] = field(default_factory=dict)  # sorted
    endpoints: dict[MessageQueue, str] = field(default_factory=dict)
    broker_addrs: dict[str, Mapping[int, str]] = field(default_factory=dict)

    def update(self, topic: str, route: TopicRouteData, *, publish_needed: bool = False) -> bool:
        """Take what the name server said of a topic.

        Args:
            topic: the topic the route is filed under.
            route: what the name server said; of the default topic, see :func:`as_default_route`.
            publish_needed: update even when nothing changed, because the producer has no queue.

        Returns:
            Whether the tables were changed.
        """
        if not topic_route_changed(self.routes.get(topic), route) and not publish_needed:
            return False
        self.broker_addrs.update({data.broker_name: data.broker_addrs for data in route.broker_datas})
        self.endpoints.update(static_endpoints(topic, route))
        info = replace(publish_queues(topic, route), have_topic_router_info=True)
        self.publish[topic], self.routes[topic] = info, info.route
        self.subscribe[topic] = sorted(subscribe_queues(topic, info.route), key=attrgetter("sort_key"))
        return True

    def forget_offline_brokers(self) -> None:
        """Drop the addresses of brokers that no known route names any more.

        Source of the rule: MQClientInstance.cleanOfflineBroker (Java client).
        """
        named = {data.broker_name for route in self.routes.values() for data in route.broker_datas}
        self.broker_addrs = {name: addrs for name, addrs in self.broker_addrs.items() if name in named}

    def needs_publish_update(self, topic: str) -> bool:
        """Whether the producer still has no queue of the topic."""
        info = self.publish.get(topic)
        return info is None or not info.ok


def as_default_route(route: TopicRouteData, default_topic_queue_nums: int) -> TopicRouteData:
    """Cut the default topic's route to what a topic created from it will have."""
    datas = tuple(
        replace(data, read_queue_nums=nums, write_queue_nums=nums)
        for data in route.queue_datas
        for nums in (min(default_topic_queue_nums, data.read_queue_nums),)
    )
    return replace(route, queue_datas=datas)
