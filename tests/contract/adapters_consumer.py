"""Adapters of the vectors about consumers: subscriptions, where a queue begins, a broker's assignment."""

from collections.abc import Iterable, Mapping
from typing import Any
from zoneinfo import ZoneInfo

from rmqtools.errors import ConfigError, ProtocolError
from rmqtools.model.group import ConsumeFromWhere, MessageQueueAssignment, SubscriptionData
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.assignment import plan_assignment, pop_init_mode
from rmqtools.policy.start_offset import StartAt, checked_offset, start_offset
from rmqtools.policy.subscription import build_subscription
from tests.contract.java_settings import consume_from_where, parse_consume_timestamp
from tests.contract.vector_spec import Case, Spec, outcome

_NO_OFFSET = -1
_READS = {"push": "READ_FROM_STORE", "lite pull": "MEMORY_FIRST_THEN_STORE"}


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
    """Java's lite pull consumer answers -1 where the push consumer raises for what the store answers."""
    calls = [f"readOffset {_READS[case['consumer']]}"]
    answer = outcome(found_offset, case, calls)
    without = {"value": answer.get("value", -1)}
    if case["consumer"] == "lite pull" and case["committedOffset"] < _NO_OFFSET:
        answer = without
    return {"calls": calls, **answer, "withoutException": without}


def found_offset(case: Case, calls: list[str]) -> int:
    if case["committedOffset"] < _NO_OFFSET:  # the sign of Java's store that a look-up failed
        raise ProtocolError("scripted")
    start = start_offset(case["committedOffset"], consume_from_where(case["consumeFromWhere"]), case["topic"])
    return asked_offset(case, start, calls) if isinstance(start, StartAt) else start


def asked_offset(case: Case, start: StartAt, calls: list[str]) -> int:
    timestamp = parse_consume_timestamp(case["consumeTimestamp"], ZoneInfo(case["timeZone"]))
    call, answer = {
        StartAt.MAX_OFFSET: ("maxOffset", case["maxOffset"]),
        StartAt.SEARCH_TIMESTAMP: (f"searchOffset {timestamp}", case["searchOffset"]),
    }[start]
    calls.append(call)
    if answer == "error":
        raise ProtocolError("scripted")
    return checked_offset(answer)


def refused_setting(case: Case) -> Case:
    """Only the lite pull consumer refuses a name when it is set."""
    set_ = outcome(consume_from_where, case["consumeFromWhere"], accept_deprecated=False)
    return {"consumer": "lite pull", "setterError": set_["error"]}


def kind_of_setter_error(answer: Any) -> Any:
    error = answer["setterError"]
    return answer | {"setterError": ConfigError.__name__ if isinstance(error, dict) else error}


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
            self.changes.append({"topic": topic, "mqAll": None, "mqDivided": triples(plan.assigned)})
        return plan.assigned == {queue for queue in self.pull | self.pop if queue.topic == topic}


def show_assignment(given: Case) -> MessageQueueAssignment:
    queue = given["queue"]
    return MessageQueueAssignment(message_queue=queue and MessageQueue(*queue), mode=given["mode"])


def triples(queues: Iterable[MessageQueue]) -> list[list[Any]]:
    return [[queue.topic, queue.broker_name, queue.queue_id] for queue in sorted(queues)]


def assignment(case: Case) -> Case:
    member = AssignedMember(case)
    mode = pop_init_mode(ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET)
    return {
        "balanced": member.rebalance(case["assignments"]),
        "tableAfter": triples(member.pull),
        "popTableAfter": triples(member.pop),
        "pullRequests": [{"queue": queue, "nextOffset": 0} for queue in triples(member.started)],
        "popRequests": [{"queue": queue, "initMode": mode} for queue in triples(member.started_pop)],
        "subscriptionsAfter": sorted(member.subscribed),
        "messageQueueChanged": member.changes,
    }


_CLIENT_EXCEPTION = "org.apache.rocketmq.client.exception.MQClientException"
_START_INPUTS = ("consumer", "consumeTimestamp", "timeZone", "topic")
_SCRIPT = ("committedOffset", "maxOffset", "searchOffset")

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
            inputs=("consumeFromWhere", *_START_INPUTS, *_SCRIPT),
            adapter=start_of_queue,
            errors={_CLIENT_EXCEPTION: ProtocolError},
        ),
        Spec(inputs=("consumeFromWhere",), adapter=refused_setting, normal=kind_of_setter_error),
    ),
    "rebalance_assignment": (Spec(inputs=("assignments", *_MEMBER), adapter=assignment),),
}
