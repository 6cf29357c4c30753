"""Offsets as option text, and as numbers of queues; pure.

The text is ``earliest``, ``latest`` or JSON ``{"topic": {"broker-a": {"0": 42, "1": -2}}}``: the next
offset to read per queue, -2 for its earliest, -1 for its latest.
Source of the form: startingOffsets and endingOffsets of Spark's Kafka source.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias

from rmqtools import MessageQueue

EARLIEST: Final = -2
LATEST: Final = -1
_LARGEST: Final = 2**63 - 1
_REMEDY: Final = "-2 is a queue's earliest, -1 its latest"

OffsetSpec: TypeAlias = Literal["earliest", "latest"] | Mapping[MessageQueue, int]


def parse_offset_spec(text: str) -> OffsetSpec:
    """Read an offset option.

    Raises:
        ValueError: malformed; says what and, for JSON, where.
    """
    word = text.strip().lower()
    if word == "earliest":
        return "earliest"
    if word == "latest":
        return "latest"
    return parse_offsets(text)


def parse_offsets(text: str) -> dict[MessageQueue, int]:
    """Read the JSON form.

    Raises:
        ValueError: malformed; says what and where.
    """
    try:
        parsed = json.loads(text, object_pairs_hook=_refuse_repeats)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"neither earliest, latest nor JSON: {error.msg} at line {error.lineno} column {error.colno}"
        ) from error
    offsets: dict[MessageQueue, int] = {}
    for topic, brokers in _items(parsed, "the whole", "topics"):
        for broker_name, queues in _items(brokers, f"topic {topic!r}", "broker names"):
            for queue_id, offset in _items(queues, f"broker {broker_name!r}", "queue ids"):
                queue = MessageQueue(topic, broker_name, _queue_id(queue_id))
                offsets[queue] = _offset(offset, _place(queue))
    return offsets


def format_offsets(offsets: Mapping[MessageQueue, int]) -> str:
    """Write the JSON form, sorted; equal offsets give equal text."""
    tree: dict[str, dict[str, dict[str, int]]] = {}
    for queue in sorted(offsets):
        queues = tree.setdefault(queue.topic, {}).setdefault(queue.broker_name, {})
        queues[str(queue.queue_id)] = offsets[queue]
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":"))


def resolve_offsets(
    spec: OffsetSpec, earliest: Mapping[MessageQueue, int], latest: Mapping[MessageQueue, int]
) -> dict[MessageQueue, int]:
    """Turn an option's value into one offset for every queue there is.

    Args:
        spec: what :func:`parse_offset_spec` gave.
        earliest: the first offset still stored, of every queue.
        latest: the offset the next message gets, of the same queues.

    Raises:
        ValueError: JSON names a queue that does not exist, leaves one out, or goes beyond what is stored.
    """
    if spec == "earliest":
        return dict(earliest)
    if spec == "latest":
        return dict(latest)
    assert not isinstance(spec, str)
    _check_queues(spec, earliest)
    chosen = {
        queue: {EARLIEST: earliest[queue], LATEST: latest[queue]}.get(offset, offset)
        for queue, offset in spec.items()
    }
    for queue, offset in chosen.items():
        if not earliest[queue] <= offset <= latest[queue]:
            raise ValueError(
                f"offset {offset} of {_place(queue)} is not stored: the queue holds "
                f"{earliest[queue]} to {latest[queue]}; {_REMEDY}"
            )
    return chosen


def _check_queues(given: Iterable[MessageQueue], known: Mapping[MessageQueue, int]) -> None:
    if unknown := sorted(set(given) - set(known)):
        raise ValueError(f"{_places(unknown)} does not exist among {_places(sorted(known))}")
    if missing := sorted(set(known) - set(given)):
        raise ValueError(f"{_places(missing)} is left out: name every queue; {_REMEDY}")


def _places(queues: Iterable[MessageQueue]) -> str:
    return ", ".join(map(_place, queues))


def _place(queue: MessageQueue) -> str:
    return f"{queue.topic}/{queue.broker_name}/{queue.queue_id}"


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


def _offset(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not EARLIEST <= value <= _LARGEST:
        raise ValueError(f"offset {json.dumps(value)} of {where}: want a whole number; {_REMEDY}")
    return value
