"""Rebalancing by the broker (5.x): a member asks for its share, of queues to pull and of queues to pop.

Source of the rules: RebalanceImpl.getRebalanceResultFromBroker and updateMessageQueueAssignment,
MQClientInstance.queryAssignment (Java client). Ours: all members ask the same broker, the first by name that
answers, where Java asks any.
"""

from collections.abc import Sequence
from typing import Protocol

from rmqtools.engine.client import ClientCore
from rmqtools.engine.pop_process_queue import PopProcessQueue
from rmqtools.engine.process_queue import ProcessQueue
from rmqtools.engine.rebalance import QueueHolder, Rebalance
from rmqtools.errors import ConfigError, RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.group import MessageQueueAssignment, QueryAssignmentRequestBody
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy
from rmqtools.policy.assignment import AssignmentPlan, HeldQueues, plan_assignment
from rmqtools.protocol.bodies import format_query_assignment, parse_query_assignment
from rmqtools.protocol.command import request
from rmqtools.protocol.headers import QueryAssignmentRequestHeader

log = get_logger(__name__)

_BROKERS_STRATEGIES = ("AVG", "AVG_BY_CIRCLE")


class PopHolder(QueueHolder, Protocol):
    """The consumer whose queues the broker shares out."""

    client: ClientCore
    group: str
    table: dict[MessageQueue, ProcessQueue]
    pop_table: dict[MessageQueue, PopProcessQueue]

    def work_on_pop(self, held: PopProcessQueue) -> None:
        """Start to pop and to consume a queue that is held now."""

    def switch_retry_topic(self, topic: str, plan: AssignmentPlan) -> None:
        """Subscribe to the retry topic of those that pop, where they pop no more, or leave it to the pops."""


class BrokerRebalance(Rebalance):
    """The rounds of one member whose share a broker computes."""

    def __init__(self, holder: PopHolder) -> None:
        super().__init__(holder, group=holder.group, client_id=holder.client.client_id, table=holder.table)
        self._pops = holder

    async def _rebalance_topic(self, topic: str, strategy: AllocateMessageQueueStrategy) -> bool:
        if topic not in self._pops.client.routes.tables.routes:
            return topic.startswith(RETRY_GROUP_TOPIC_PREFIX)  # made when the first message fails
        assignments = await self._query(topic, strategy.name)
        if assignments is None:
            log.info("assignment_unknown", group=self._group, topic=topic)
            return False
        held = HeldQueues(
            pull=list(self.table),
            pop=list(self._pops.pop_table),
            expired_pull=[queue for queue, each in self.table.items() if each.is_pull_expired],
            expired_pop=[queue for queue, each in self._pops.pop_table.items() if each.is_pull_expired],
        )
        plan = plan_assignment(topic, self._group, assignments=assignments, held=held)
        self._pops.switch_retry_topic(topic, plan)
        return await self._apply(topic, plan)

    async def _apply(self, topic: str, plan: AssignmentPlan) -> bool:
        """Hold what is assigned and nothing else of the topic; whether that is so now."""
        for queue in plan.drop_pop:
            self._pops.pop_table.pop(queue).drop()
        changed = await self._drop_others(topic, plan.pull)
        changed |= await self._add(plan.pull)
        for queue in plan.add_pop:
            popped = self._pops.pop_table[queue] = PopProcessQueue(queue, self._pops.client.clock)
            self._pops.work_on_pop(popped)
        if changed or plan.drop_pop or plan.add_pop:
            self._holder.queues_changed(topic, await self._holder.find_queues(topic) or (), plan.assigned)
        pulled = {queue for queue, held in self.table.items() if not held.is_dropped}
        working = {queue for queue in (*pulled, *self._pops.pop_table) if queue.topic == topic}
        return working == plan.assigned

    async def _query(self, topic: str, strategy_name: str) -> Sequence[MessageQueueAssignment] | None:
        """This member's share; None: no broker can tell, and everything stays as it is."""
        routes = self._pops.client.routes
        body = QueryAssignmentRequestBody(
            topic=topic, consumer_group=self._group, client_id=self._client_id, strategy_name=strategy_name
        )
        command = request(QueryAssignmentRequestHeader(), format_query_assignment(body))
        for name in sorted(broker.broker_name for broker in routes.tables.routes[topic].broker_datas):
            try:
                answer = await self._pops.client.remoting.invoke_ok(routes.admin_addr(name), command)
            except RocketMQError as error:
                log.info("assignment_not_told", group=self._group, broker=name, reason=str(error))
                continue
            return parse_query_assignment(answer.body).message_queue_assignments
        return None

    async def _drop_other_topics(self) -> bool:
        topics, table = set(self._holder.subscribed_topics()), self._pops.pop_table
        for queue in [queue for queue in table if queue.topic not in topics]:
            table.pop(queue).drop()
        return await super()._drop_other_topics()


def check_brokers_know(strategy_name: str) -> None:
    """Raise unless brokers can share queues out by a strategy.

    Raises:
        ConfigError: they do not know it.
    """
    if strategy_name not in _BROKERS_STRATEGIES:
        raise ConfigError(
            f"client_rebalance=False with strategy {strategy_name!r}: brokers share queues out by "
            f"{' or '.join(_BROKERS_STRATEGIES)} only; set client_rebalance=True"
        )
