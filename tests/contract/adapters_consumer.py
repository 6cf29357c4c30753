"""Adapters of the vectors about consumers: subscriptions, where a queue begins, a broker's assignment."""

from collections.abc import Mapping
from typing import Any

from rmqtools.errors import ConfigError, ProtocolError
from rmqtools.model.group import ConsumeFromWhere, MessageQueueAssignment, SubscriptionData
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.assignment import plan_assignment, pop_init_mode
from rmqtools.policy.start_offset import StartAt, checked_offset, start_offset
from rmqtools.policy.subscription import build_subscription
from tests.contract.vector_spec import Case, Spec, outcome, show_queues


def subscription(case: Case) -> Case:
    return outcome(
        lambda: show_subscription(
            build_subscription("T", case["subString"], expression_type=case["type"]),
        )
    )


def show_subscription(made: SubscriptionData) -> Case:
    return {
        "subString": made.sub_string,
        "expressionType": made.expression_type,
        "tagsSet": list(made.tags_set),
        "codeSet": list(made.code_set),
        "classFilterMode": made.class_filter_mode,
    }


def start_of_queue(case: Case) -> Case:
    """Where the push consumer begins, and what it asks the broker for that."""
    start = start_offset(case["committedOffset"], ConsumeFromWhere(case["consumeFromWhere"]), case["topic"])
    if not isinstance(start, StartAt):
        return {"calls": [], "value": start}
    call = {StartAt.MAX_OFFSET: "maxOffset", StartAt.SEARCH_TIMESTAMP: "searchOffset"}[start]
    answer = -1 if case[call] == "error" else case[call]
    return {"calls": [call], **outcome(checked_offset, answer)}


class AssignedMember:
    """A member whose broker answers every topic with the same assignments; it does what the plans say."""

    def __init__(self, case: Case) -> None:
        self.pull = {MessageQueue(*queue) for queue in case["tableBefore"]}
        self.pop = {MessageQueue(*queue) for queue in case["popTableBefore"]}
        self.subscribed = {"T", *([case["popRetryTopic"]] if case["retryTopicSubscribedBefore"] else ())}
        self.started: list[MessageQueue] = []
        self.started_pop: list[MessageQueue] = []
        self.changes: list[Case] = []

    def rebalance(self, answer: Any) -> bool:
        """A round; whether the member is balanced after it."""
        if not isinstance(answer, list):
            return False  # failed, or the broker does not know the member
        assignments = [show_assignment(each) for each in answer]
        balanced = [self.take(topic, assignments) for topic in sorted(self.subscribed)]
        self.pull = {queue for queue in self.pull if queue.topic in self.subscribed}
        self.pop = {queue for queue in self.pop if queue.topic in self.subscribed}
        return all(balanced)

    def take(self, topic: str, assignments: list[MessageQueueAssignment]) -> bool:
        plan = plan_assignment(topic, "g", assignments=assignments, popped=self.pop)
        self.subscribed = (self.subscribed | {plan.subscribe}) - {plan.unsubscribe, None}
        dropped = {queue for queue in self.pull if queue.topic == topic} - set(plan.pull)
        started = [queue for queue in plan.pull if queue not in self.pull]
        self.pull = self.pull - dropped | set(plan.pull)
        self.pop = self.pop - set(plan.drop_pop) | set(plan.add_pop)
        self.started += started
        self.started_pop += plan.add_pop
        if dropped or started or plan.drop_pop or plan.add_pop:
            self.changes.append(
                {"topic": topic, "mqAll": None, "mqDivided": show_queues(sorted(plan.assigned))}
            )
        return plan.assigned == {queue for queue in self.pull | self.pop if queue.topic == topic}


def show_assignment(given: Case) -> MessageQueueAssignment:
    queue = given["queue"]
    return MessageQueueAssignment(message_queue=queue and MessageQueue(*queue), mode=given["mode"])


def assignment(case: Case) -> Case:
    member = AssignedMember(case)
    mode = pop_init_mode(ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET)
    return {
        "balanced": member.rebalance(case["assignments"]),
        "tableAfter": show_queues(sorted(member.pull)),
        "popTableAfter": show_queues(sorted(member.pop)),
        "pullRequests": [{"queue": queue, "nextOffset": 0} for queue in show_queues(sorted(member.started))],
        "popRequests": [
            {"queue": queue, "initMode": mode} for queue in show_queues(sorted(member.started_pop))
        ],
        "subscriptionsAfter": sorted(member.subscribed),
        "messageQueueChanged": member.changes,
    }


_CLIENT_EXCEPTION = "org.apache.rocketmq.client.exception.MQClientException"
_START_INPUTS = ("consumeFromWhere", "topic", "committedOffset", "maxOffset", "searchOffset")

_MEMBER = ("popRetryTopic", "retryTopicSubscribedBefore", "tableBefore", "popTableBefore")

SPECS: Mapping[str, tuple[Spec, ...]] = {
    "subscription": (
        Spec(
            inputs=("subString", "type"),
            adapter=subscription,
            errors={"java.lang.IllegalArgumentException": ConfigError},
        ),
    ),
    "start_offset": (
        Spec(
            inputs=_START_INPUTS,
            adapter=start_of_queue,
            errors={_CLIENT_EXCEPTION: ProtocolError},
        ),
    ),
    "rebalance_assignment": (Spec(inputs=("assignments", *_MEMBER), adapter=assignment),),
}
