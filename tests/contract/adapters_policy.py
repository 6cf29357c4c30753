"""Adapters of the vectors about routes and the selection of queues."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rmqtools.model.queue import MessageQueue
from rmqtools.model.route import TopicRouteData
from rmqtools.policy.broker_address import FoundBroker, find_in_admin, find_in_publish, find_in_subscribe
from rmqtools.policy.publish import TopicPublishInfo, publish_queues, subscribe_queues, topic_route_changed
from rmqtools.policy.route_update import RouteTables, as_default_route
from rmqtools.policy.select import QueueFilter, QueueIndex, select_avoiding, select_filtered, select_next
from rmqtools.protocol.wire.bodies import format_body, parse_body, parse_json
from tests.contract.vector_spec import Case, Spec, outcome

_ASKED_BROKERS = ("broker-a", "broker-b", "absent")


def make_route(given: Case) -> TopicRouteData:
    """A route as a name server would have sent it."""
    return parse_body(TopicRouteData, json.dumps(given).encode())


def show_route(route: TopicRouteData) -> Any:
    """A route as the vectors write it."""
    return parse_json(format_body(route))


def pair(queue: MessageQueue | None) -> list[Any] | None:
    """A queue without its topic."""
    return None if queue is None else [queue.broker_name, queue.queue_id]


def show_publish(info: TopicPublishInfo) -> Case:
    return {
        "orderTopic": info.order_topic,
        "haveTopicRouterInfo": info.have_topic_router_info,
        "ok": info.ok,
        "queues": [pair(queue) for queue in info.queues],
        "queueDatasAfter": [data.broker_name for data in info.route.queue_datas],
        "writeQueueNumsByBroker": {name: write_queue_nums(info, name) for name in _ASKED_BROKERS},
    }


def write_queue_nums(info: TopicPublishInfo, broker_name: str) -> int:
    """How many write queues the broker has for the topic; -1 when the route does not name it."""
    datas = (data for data in info.route.queue_datas if data.broker_name == broker_name)
    return next((data.write_queue_nums for data in datas), -1)


def route_publish(case: Case) -> Case:
    return outcome(lambda: show_publish(publish_queues(case["topic"], make_route(case["route"]))))


def route_subscribe(case: Case) -> Case:
    return outcome(
        lambda: [pair(queue) for queue in sorted(subscribe_queues(case["topic"], make_route(case["route"])))]
    )


def route_changed(case: Case) -> Case:
    old = None if case["old"] is None else make_route(case["old"])
    return {"value": topic_route_changed(old, make_route(case["new"]))}


def route_update(case: Case) -> Case:
    tables = RouteTables()
    return {"steps": [route_update_step(tables, case["topic"], step) for step in case["steps"]]}


def route_update_step(tables: RouteTables, topic: str, step: Case) -> Case:
    returned, answer = False, step["nameServer"]
    if "route" in answer:
        route = make_route(answer["route"])
        if step["isDefault"]:
            route = as_default_route(route, step["defaultTopicQueueNums"])
        returned = tables.update(topic, route, publish_needed=step["producerNeedsUpdate"])
    known = tables.routes.get(topic)
    return {
        "returned": returned,
        "published": [show_published(topic, tables.publish[topic])] if returned else [],
        "topicRouteTable": known and show_route(known),
        "brokerAddrTable": {
            name: {str(id_): addr for id_, addr in addrs.items()}
            for name, addrs in tables.broker_addrs.items()
        },
    }


def update_answer(answer: Case) -> Case:
    """The vectors leave fields of a route out that have Java's defaults."""
    for step in answer["steps"]:
        if step["topicRouteTable"] is not None:
            step["topicRouteTable"] = show_route(make_route(step["topicRouteTable"]))
    return answer


def show_published(topic: str, info: TopicPublishInfo) -> Case:
    queues = [pair(queue) for queue in info.queues]
    return {"topic": topic, "haveTopicRouterInfo": info.have_topic_router_info, "queues": queues}


def show_found(found: FoundBroker | None) -> Case | None:
    return None if found is None else {"brokerAddr": found.broker_addr, "slave": found.is_slave}


def ask_subscribe(table: Mapping[str, Mapping[int, str]], ask: Case) -> Any:
    only = ask["onlyThisBroker"]
    return show_found(find_in_subscribe(table, ask["brokerName"], ask["brokerId"], only_this_broker=only))


_ASKS: Mapping[str, Callable[[Any, Case], Any]] = {
    "subscribe": ask_subscribe,
    "publish": lambda table, ask: find_in_publish(table, ask["brokerName"]),
    "admin": lambda table, ask: show_found(find_in_admin(table, ask["brokerName"])),
}


def broker_address(case: Case) -> Case:
    table = {"broker-a": {int(id_): addr for id_, addr in case["brokerAddrs"].items()}}
    return {"asks": [{"expect": _ASKS[ask["op"]](table, ask)} for ask in case["asks"]]}


def select_index(case: Case) -> Case:
    index = QueueIndex(case["start"])
    steps = [(index.next(), index.value) for _ in range(_INDEX_STEPS)]
    return {"returned": [step[0] for step in steps], "stored": [step[1] for step in steps]}


_INDEX_STEPS = 4


def broker_filter(excluded: Sequence[str]) -> QueueFilter:
    return lambda queue: queue.broker_name not in excluded


_SELECTS: Mapping[str, Callable[[Any, QueueIndex, Case], MessageQueue | None]] = {
    "next": lambda queues, index, op: select_next(queues, index),
    "avoid": lambda queues, index, op: select_avoiding(queues, index, op["lastBrokerName"]),
    "filters": lambda queues, index, op: select_filtered(
        queues or (), index, [broker_filter(excluded) for excluded in op["excludedBrokers"]]
    ),
}


def select_queue(case: Case) -> Case:
    index = QueueIndex(case["startIndex"])
    queues = None if case["queues"] is None else [MessageQueue("T", *queue) for queue in case["queues"]]
    return {"ops": [select_step(queues, index, op) for op in case["ops"]]}


def select_step(queues: Sequence[MessageQueue] | None, index: QueueIndex, op: Case) -> Case:
    answer = outcome(lambda: pair(_SELECTS[op["op"]](queues, index, op)))
    return answer | {"indexAfter": index.value}


_UPDATE_INPUTS = ("isDefault", "defaultTopicQueueNums", "nameServer", "producerNeedsUpdate")
_ASK_INPUTS = ("op", "brokerName", "brokerId", "onlyThisBroker")
_SELECT_INPUTS = ("op", "lastBrokerName", "excludedBrokers")

SPECS: Mapping[str, tuple[Spec, ...]] = {
    "route_publish": (Spec(inputs=("topic", "route"), adapter=route_publish),),
    "route_subscribe": (Spec(inputs=("topic", "route"), adapter=route_subscribe),),
    "route_changed": (Spec(inputs=("old", "new"), adapter=route_changed),),
    "route_update": (
        Spec(
            inputs=("topic", *(f"steps[].{key}" for key in _UPDATE_INPUTS)),
            adapter=route_update,
            normal=update_answer,
        ),
    ),
    "broker_address": (
        Spec(
            inputs=("brokerAddrs", *(f"asks[].{key}" for key in _ASK_INPUTS)),
            adapter=broker_address,
            labels=("asks[].expect.brokerVersion",),  # from heartbeats, which only Java's route table holds
        ),
    ),
    "select_index": (Spec(inputs=("start",), adapter=select_index),),
    "select_queue": (
        Spec(
            inputs=("queues", "startIndex", *(f"ops[].{key}" for key in _SELECT_INPUTS)),
            adapter=select_queue,
        ),
    ),
}
