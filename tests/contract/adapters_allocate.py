"""Adapters of the vectors about the sharing of queues among the members of a group."""

from collections.abc import Mapping
from typing import Any

from rmqtools.allocate import (
    AllocateAveragely,
    AllocateAveragelyByCircle,
    AllocateByConfig,
    AllocateByConsistentHash,
    AllocateByMachineRoom,
    AllocateMachineRoomNearby,
    AllocateMessageQueueStrategy,
    RoomByPrefix,
    share,
    strategy_of,
)
from rmqtools.errors import ConfigError
from rmqtools.model.queue import MessageQueue, java_order
from rmqtools.policy.allocate.by_consistent_hash import consistent_hash
from rmqtools.policy.allocate.share import share_ordered
from tests.contract.vector_spec import ERROR_OF_JAVA, Case, Spec, null_if_empty, outcome, show_queues

_ERRORS = {"java.lang.IllegalArgumentException": ConfigError}
_OUTSIDER = "outsider@1"


def show_shares(strategy: AllocateMessageQueueStrategy, case: Case) -> Case:
    """What each member gets of lists in the order given, as Java's strategies were asked.

    Sorted lists go through ``share``, which must not change anything.
    """
    queues = [MessageQueue(case["topic"], *queue) for queue in case["mqAll"]]
    in_order = queues == sorted(queues) and case["cidAll"] == sorted(case["cidAll"], key=java_order)
    ask = share if in_order else share_ordered
    answers = {
        client_id: outcome(lambda client_id=client_id: ask(strategy, "g", client_id, queues, case["cidAll"]))
        for client_id in (*case["cidAll"], _OUTSIDER)
    }
    return show_answers(strategy.name, queues, answers)


def show_answers(name: str, queues: list[MessageQueue], answers: Mapping[str, Case]) -> Case:
    """The vectors write queues by their place, and errors apart."""
    shares = {client_id: answer["value"] for client_id, answer in answers.items() if "value" in answer}
    return {
        "strategy": name,
        "expect": {client_id: [queues.index(queue) for queue in mine] for client_id, mine in shares.items()},
        "expectError": {
            client_id: answer["error"] for client_id, answer in answers.items() if "error" in answer
        },
    }


def shares_answer(answer: Case) -> Case:
    """Errors by their kind; the vectors leave the key out where there are none."""
    errors = {client_id: error_kind(error) for client_id, error in answer.get("expectError", {}).items()}
    return answer | {"expectError": errors}


def error_kind(error: Any) -> str:
    kinds = {**ERROR_OF_JAVA, **_ERRORS}
    return kinds[error["class"]].__name__ if isinstance(error, dict) else error


def averagely(case: Case) -> Case:
    return show_shares(AllocateAveragely(), case)


def averagely_by_circle(case: Case) -> Case:
    return show_shares(AllocateAveragelyByCircle(), case)


def machine_room(case: Case) -> Case:
    return show_shares(AllocateByMachineRoom(case["consumeridcs"]), case)


def machine_room_nearby(case: Case) -> Case:
    return show_shares(AllocateMachineRoomNearby(strategy_of(case["inner"]), RoomByPrefix("-")), case)


def machine_room_nearby_construct(case: Case) -> Case:
    """One part missing or the other: Java's answer, and ours, is the same."""
    no_inner = outcome(AllocateMachineRoomNearby, None, RoomByPrefix())
    no_resolver = outcome(AllocateMachineRoomNearby, AllocateAveragely(), None)
    return {"construct": no_inner if no_inner == no_resolver else [no_inner, no_resolver]}


def consistent_hash_shares(case: Case) -> Case:
    return show_shares(AllocateByConsistentHash(case["virtualNodes"]), case)


def consistent_hash_construct(case: Case) -> Case:
    return {"construct": outcome(AllocateByConsistentHash, case["virtualNodes"])}


def consistent_hash_md5(case: Case) -> Case:
    return {"hash": consistent_hash(case["key"])}


def make_queues(given: list[list[Any]] | None) -> list[MessageQueue] | None:
    return None if given is None else [MessageQueue(*queue) for queue in given]


_OPTIONS = {"consumeridcs": "consumer_idcs", "virtualNodes": "virtual_nodes"}


def inputs(case: Case) -> Case:
    strategy = strategy_of(
        case["strategy"], **{_OPTIONS[key]: case[key] for key in _OPTIONS.keys() & case.keys()}
    )
    asked: Any = case["currentCID"], make_queues(case["mqAll"]), case["cidAll"]
    return outcome(lambda: show_queues(share(strategy, "g", *asked)))


def config_inputs(case: Case) -> Case:
    """Java's CONFIG checks nothing; ``share`` does for it, too, so the strategy itself is asked."""
    strategy = AllocateByConfig(make_queues(case["messageQueueList"]) or ())
    asked: Any = case["currentCID"], make_queues(case["mqAll"]), case["cidAll"]
    return outcome(lambda: show_queues(strategy.allocate("g", *asked)))


_ASKED = ("topic", "mqAll", "cidAll")
_INPUTS = ("strategy", "currentCID", "mqAll", "cidAll")

SPECS: Mapping[str, tuple[Spec, ...]] = {
    "allocate_averagely": (Spec(inputs=_ASKED, adapter=averagely, normal=shares_answer),),
    "allocate_averagely_by_circle": (Spec(inputs=_ASKED, adapter=averagely_by_circle, normal=shares_answer),),
    "allocate_machine_room": (
        Spec(inputs=(*_ASKED, "consumeridcs"), adapter=machine_room, normal=shares_answer),
    ),
    "allocate_machine_room_nearby": (
        Spec(inputs=(*_ASKED, "inner"), adapter=machine_room_nearby, normal=shares_answer),
        Spec(
            inputs=(),
            adapter=machine_room_nearby_construct,
            errors={"java.lang.NullPointerException": ConfigError},
        ),
    ),
    "allocate_consistent_hash": (
        Spec(inputs=(*_ASKED, "virtualNodes"), adapter=consistent_hash_shares, normal=shares_answer),
        Spec(inputs=("virtualNodes",), adapter=consistent_hash_construct, errors=_ERRORS),
    ),
    "allocate_inputs": (
        Spec(inputs=(*_INPUTS, "messageQueueList"), adapter=config_inputs, normal=null_if_empty("value")),
        Spec(inputs=(*_INPUTS, "consumeridcs"), adapter=inputs, errors=_ERRORS),
        Spec(inputs=(*_INPUTS, "virtualNodes"), adapter=inputs, errors=_ERRORS),
        Spec(inputs=_INPUTS, adapter=inputs, errors=_ERRORS, labels=("inner",)),  # it is in the name
    ),
    "consistent_hash_md5": (Spec(inputs=("key",), adapter=consistent_hash_md5),),
}
