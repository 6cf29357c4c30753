"""Queues in JSON: ``{"topic": {"broker-a": {"0": number}}}``, or with lists of ids; pure.

Source of the form: the JSON of startingOffsets and assign of Spark's Kafka source, with a level for brokers.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from rmqtools import MessageQueue

_LARGEST: Final = 2**63 - 1


def parse_numbers(text: str, *, what: str, lowest: int, remedy: str) -> dict[MessageQueue, int]:
    """Read a number per queue.

    Args:
        text: the JSON.
        what: what a number is, for errors.
        lowest: the smallest there is.
        remedy: what else a number may be, for errors.

    Raises:
        ValueError: malformed; says what and where.
    """
    numbers: dict[MessageQueue, int] = {}
    for topic, brokers in _items(_parse(text), "the whole", "topics"):
        for broker_name, queues in _items(brokers, f"topic {topic!r}", "broker names"):
            for queue_id, number in _items(queues, f"broker {broker_name!r}", "queue ids"):
                queue = MessageQueue(topic, broker_name, _queue_id(queue_id))
                if not _is_whole(number) or not lowest <= number <= _LARGEST:
                    raise ValueError(
                        f"{what} {json.dumps(number)} of {place(queue)}: want a whole number; {remedy}"
                    )
                numbers[queue] = number
    return numbers


def parse_queues(text: str) -> frozenset[MessageQueue]:
    """Read ``{"topic": {"broker-a": [0, 1]}}``.

    Raises:
        ValueError: malformed, or a queue is named twice; says what and where.
    """
    queues: list[MessageQueue] = []
    for topic, brokers in _items(_parse(text), "the whole", "topics"):
        for broker_name, queue_ids in _items(brokers, f"topic {topic!r}", "broker names"):
            where = f"broker {broker_name!r} of topic {topic!r}"
            if not isinstance(queue_ids, list) or not queue_ids or not all(map(_is_id, queue_ids)):
                raise ValueError(f"{where} is {json.dumps(queue_ids)}: want a list of queue ids")
            if len(set(queue_ids)) != len(queue_ids):
                raise ValueError(f"{where} is {json.dumps(queue_ids)}: a queue id is given twice")
            queues.extend(MessageQueue(topic, broker_name, queue_id) for queue_id in queue_ids)
    return frozenset(queues)


def format_numbers(numbers: Mapping[MessageQueue, int]) -> str:
    """Write a number per queue, sorted; equal numbers give equal text."""
    tree: dict[str, dict[str, dict[str, int]]] = {}
    for queue in sorted(numbers):
        queues = tree.setdefault(queue.topic, {}).setdefault(queue.broker_name, {})
        queues[str(queue.queue_id)] = numbers[queue]
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":"))


def place(queue: MessageQueue) -> str:
    """``topic/broker/id``, as errors and logs name a queue."""
    return f"{queue.topic}/{queue.broker_name}/{queue.queue_id}"


def places(queues: Iterable[MessageQueue]) -> str:
    """Several, sorted."""
    return ", ".join(map(place, sorted(queues)))


def _parse(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_refuse_repeats)
    except json.JSONDecodeError as error:
        raise ValueError(f"it is no JSON: {error.msg} at line {error.lineno} column {error.colno}") from error


def _refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    tree = dict(pairs)
    if len(tree) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} is given twice")
    return tree


def _items(node: Any, where: str, of: str) -> Iterable[tuple[str, Any]]:
    if not isinstance(node, dict):
        raise ValueError(f"{where} is {json.dumps(node)}: want an object of {of}")
    if not node:
        raise ValueError(f"{where} is empty: want an object of {of}")
    return node.items()


def _queue_id(text: str) -> int:
    if not (text.isascii() and text.isdigit() and str(int(text)) == text):
        raise ValueError(f"queue id {text!r} is not a whole number")
    return int(text)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_id(value: Any) -> bool:
    return _is_whole(value) and value >= 0
