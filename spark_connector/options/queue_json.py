"""Queues in JSON: ``{"topic": {"broker-a": {"0": number}}}``, or with lists of ids; pure.

Source of the form: the JSON of startingOffsets and assign of Spark's Kafka source, with a level for brokers.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, TypeVar

from rmqtools import MessageQueue
from spark_connector.options.option import LARGEST

ANY: Final = "*"
_ANY_ID: Final = -1
T = TypeVar("T")


def parse_numbers(
    text: str, *, what: str, lowest: int, remedy: str, defaults: Collection[int] = ()
) -> dict[MessageQueue, int]:
    """Parse a number per queue.

    Args:
        text: the JSON.
        what: meaning of a number, for errors.
        lowest: smallest allowed number.
        remedy: allowed special numbers, for errors.
        defaults: numbers allowed for ``"*"``, which stands for all queues not named at its level, see
            :func:`default_of`. Empty: ``"*"`` is refused.

    Raises:
        ValueError: malformed; the text names the error and its place.
    """

    def number(value: Any, where: str) -> int:
        if not _is_whole(value) or not lowest <= value <= LARGEST:
            raise ValueError(f"{what} {json.dumps(value)} of {where}: want a whole number; {remedy}")
        return int(value)

    def default(value: Any, where: str) -> int:
        if value not in defaults or not _is_whole(value):
            raise ValueError(
                f"{what} {json.dumps(value)} of {where}: want one of {', '.join(map(str, defaults))}"
            )
        return int(value)

    return parse_values(text, number, default if defaults else None)


def parse_values(
    text: str,
    parse: Callable[[Any, str], T],
    default: Callable[[Any, str], T] | None = None,
) -> dict[MessageQueue, T]:
    """Parse a value per queue.

    Args:
        text: the JSON.
        parse: takes a value and its place; raises ValueError.
        default: the same for values of ``"*"``; None: ``"*"`` is refused.

    Raises:
        ValueError: malformed; the text names the error and its place.
    """
    values: dict[MessageQueue, T] = {}

    def is_default(name: str, value: Any, *levels: str) -> bool:
        if name != ANY or default is None:
            return False
        topic, broker_name = (*levels, ANY, ANY)[:2]
        values[MessageQueue(topic, broker_name, _ANY_ID)] = default(value, "/".join([*levels, ANY]))
        return True

    for topic, brokers in _items(_parse(text), "the whole", "topics"):
        if is_default(topic, brokers):
            continue
        for broker_name, queues in _items(brokers, f"topic {topic!r}", "broker names"):
            if is_default(broker_name, queues, topic):
                continue
            for queue_id, value in _items(queues, f"broker {broker_name!r}", "queue ids"):
                if not is_default(queue_id, value, topic, broker_name):
                    queue = MessageQueue(topic, broker_name, _queue_id(queue_id))
                    values[queue] = parse(value, place(queue))
    return values


def default_of(queue: MessageQueue, values: Mapping[MessageQueue, T]) -> T | None:
    """Return the value of ``"*"`` for a queue: that of its broker, else of its topic, else of all."""
    keys = (
        MessageQueue(queue.topic, queue.broker_name, _ANY_ID),
        MessageQueue(queue.topic, ANY, _ANY_ID),
        MessageQueue(ANY, ANY, _ANY_ID),
    )
    return next((values[key] for key in keys if key in values), None)


def is_named(queue: MessageQueue) -> bool:
    """Return whether a key of parsed values is a queue, not a ``"*"``."""
    return queue.queue_id != _ANY_ID


def parse_queues(text: str) -> frozenset[MessageQueue]:
    """Parse ``{"topic": {"broker-a": [0, 1]}}``.

    Raises:
        ValueError: malformed, or a queue is named twice; the text names the error and its place.
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
    """Format a number per queue, sorted; equal numbers give equal text."""
    tree: dict[str, dict[str, dict[str, int]]] = {}
    for queue in sorted(numbers):
        queues = tree.setdefault(queue.topic, {}).setdefault(queue.broker_name, {})
        queues[str(queue.queue_id)] = numbers[queue]
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":"))


def place(queue: MessageQueue) -> str:
    """Format a queue for errors and logs: ``topic/broker/id``."""
    return f"{queue.topic}/{queue.broker_name}/{queue.queue_id}"


def places(queues: Iterable[MessageQueue]) -> str:
    """Format several queues, sorted."""
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
