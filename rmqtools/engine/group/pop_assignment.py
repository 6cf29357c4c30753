"""Rebalancing by the broker (5.x): a member asks for its share of queues to pull and to pop.

Source of the rules: RebalanceImpl.getRebalanceResultFromBroker and updateMessageQueueAssignment,
MQClientInstance.queryAssignment (Java client). Ours: all members ask the same broker, the first by name that
answers; Java asks any.
"""

from collections.abc import Sequence

from rmqtools.engine.connection.large_bodies import parse_aside
from rmqtools.engine.group.rebalance import Rebalance
from rmqtools.errors import ConfigError, RocketMQError, UnsupportedError
from rmqtools.log import get_logger
from rmqtools.model.group import MessageQueueAssignment, QueryAssignmentRequestBody
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy
from rmqtools.policy.assignment import AssignmentPlan, plan_assignment
from rmqtools.protocol.headers.group import QueryAssignmentRequestHeader
from rmqtools.protocol.wire.bodies import format_query_assignment, parse_query_assignment
from rmqtools.protocol.wire.command import request

log = get_logger(__name__)

_BROKERS_STRATEGIES = ("AVG", "AVG_BY_CIRCLE")


class BrokerRebalance(Rebalance):
    """Rounds of a member whose share a broker computes."""

    async def _rebalance_topic(self, topic: str, strategy: AllocateMessageQueueStrategy) -> bool:
        if topic not in self._member.client.routes.tables.routes:
            return topic.startswith(RETRY_GROUP_TOPIC_PREFIX)  # created when the first message fails
        assignments = await self._query(topic, strategy.name)
        if assignments is None:
            log.info("assignment_unknown", group=self._group, topic=topic)
            return False
        popped = {held.queue: held for held in self._held.popped.of_topic(topic)}
        plan = plan_assignment(
            topic,
            self._group,
            assignments=assignments,
            popped=list(popped),
            expired=[queue for queue, each in popped.items() if each.is_pull_expired],
        )
        self._switch_retry_topic(topic, plan)
        return await self._apply(topic, plan)

    def _switch_retry_topic(self, topic: str, plan: AssignmentPlan) -> None:
        """Subscribe to the retry topic of a topic no longer popped; unsubscribe while it is popped."""
        subscriptions = self._member.subscriptions
        if plan.subscribe is not None and plan.subscribe not in subscriptions:
            self._member.names.was_popped(plan.subscribe, topic)
            subscriptions.want_all(plan.subscribe)
        if plan.unsubscribe is not None:
            subscriptions.want_no_more(plan.unsubscribe)

    async def _apply(self, topic: str, plan: AssignmentPlan) -> bool:
        """Hold exactly the assigned queues of the topic; return whether that succeeded."""
        for queue in plan.drop_pop:
            self._held.give_up_popped(queue)
        changed = await self._drop_others(topic, plan.pull)
        changed |= bool(await self._add(plan.pull))
        for queue in plan.add_pop:
            self._held.hold_popped(queue)
        if changed or plan.drop_pop or plan.add_pop:
            queues = await self._member.subscriptions.find_queues(topic) or ()
            self._queues_changed(topic, queues, plan.assigned)
        held = (*self._held.pulled.of_topic(topic), *self._held.popped.of_topic(topic))
        return {each.queue for each in held if not each.is_dropped} == plan.assigned

    async def _query(self, topic: str, strategy_name: str) -> Sequence[MessageQueueAssignment] | None:
        """Return this member's share; None: no broker can compute it, and all queues stay as they are."""
        client = self._member.client
        routes = client.routes
        body = QueryAssignmentRequestBody(
            topic=topic,
            consumer_group=self._group,
            client_id=self._member.client_id,
            strategy_name=strategy_name,
        )
        command = request(QueryAssignmentRequestHeader(), format_query_assignment(body))
        for name in sorted(broker.broker_name for broker in routes.tables.routes[topic].broker_datas):
            try:
                answer = await client.remoting.invoke_ok(routes.admin_addr(name), command)
                return (await parse_aside(parse_query_assignment, answer.body)).message_queue_assignments
            except UnsupportedError as error:  # the topic was made after the start
                log.error("assignment_not_supported", group=self._group, broker=name, reason=str(error))
            except RocketMQError as error:
                log.info("assignment_not_told", group=self._group, broker=name, reason=str(error))
        return None

    async def _drop_other_topics(self) -> bool:
        for topic in set(self._held.popped.topics) - set(self._member.subscriptions.topics()):
            for held in self._held.popped.of_topic(topic):
                self._held.give_up_popped(held.queue)
        return await super()._drop_other_topics()


def check_brokers_know(strategy_name: str) -> None:
    """Check that brokers know a strategy.

    Raises:
        ConfigError: brokers do not know it.
    """
    if strategy_name not in _BROKERS_STRATEGIES:
        raise ConfigError(
            f"client_rebalance=False with strategy {strategy_name!r}: brokers share queues out by "
            f"{' or '.join(_BROKERS_STRATEGIES)} only; set client_rebalance=True"
        )
