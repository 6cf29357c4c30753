"""The offsets of a stream in Spark's checkpoint; pure.

    {
        "begin": {"topic": {"broker-a": {"1": 0}}},
        "initial": {"topic": {"broker-a": {"0": 12, "1": 0}}},
        "marks": {"topic": {"broker-a": {"0": {"offset": 41, "time": 1795296714754}}}},
        "new": {"topic": {"broker-a": {"0": 3, "1": 0}}},
        "offsets": {"topic": {"broker-a": {"0": 42, "1": 7}}},
        "version": "1.3"
    }

``offsets`` is the next offset to read per queue. ``begin`` is the begin of the micro-batch that ends here,
for queues whose begin is not in the previous offsets: all queues in the first batch (Spark does not store the
result of ``initialOffset``), later new queues and queues with lost offsets. So a batch that Spark repeats
reads the same messages, even after a crash in the first one. ``marks`` distinguishes a topic from a later one
of the same name: see :class:`spark_connector.read.loss.QueueMark`.

``initial`` and ``new`` are there only if PySpark 4.0 or 4.1 plans a batch, which does not tell where a batch
begins until its end is planned. ``initial`` is the begin of the query's first batch, ``new`` that of queues
that the previous offsets do not have.

Versions: 1.1 added ``begin``, 1.2 ``marks``, 1.3 ``initial`` and ``new``. Older readers ignore the additions
of a minor version; a major version is not read.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rmqtools import MessageQueue
from rmqtools.errors import ConfigError
from spark_connector.options.queue_json import format_numbers, parse_numbers, place
from spark_connector.read.loss import QueueMark

VERSION: Final = "1.3"
_MAJOR: Final = VERSION.split(".")[0]


@dataclass(frozen=True, slots=True)
class StreamOffsets:
    """Position of a stream: per queue the next offset, the begin of the batch that ends here, the mark."""

    next: Mapping[MessageQueue, int]
    begin: Mapping[MessageQueue, int] = field(default_factory=dict)
    marks: Mapping[MessageQueue, QueueMark] = field(default_factory=dict)
    initial: Mapping[MessageQueue, int] = field(default_factory=dict)
    new: Mapping[MessageQueue, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON that Spark stores, sorted at every level; equal offsets give equal text."""
        whole = {
            "begin": _tree(self.begin),
            "initial": _tree(self.initial),
            "marks": _marks_tree(self.marks),
            "new": _tree(self.new),
            "offsets": _tree(self.next),
            "version": VERSION,
        }
        return {name: tree for name, tree in whole.items() if tree or name not in ("initial", "new")}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> "StreamOffsets":
        """Parse the JSON that Spark returns, possibly from a checkpoint of another version.

        Raises:
            ConfigError: another major version, or not this source's offsets.
        """
        _check_version(given.get("version"))
        try:
            return cls(
                _parse(given["offsets"]),
                _parse(given.get("begin", {})),
                _parse_marks(given.get("marks", {})),
                _parse(given.get("initial", {})),
                _parse(given.get("new", {})),
            )
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise ConfigError(f"the checkpoint's offsets cannot be read: {error}") from None


def batch_begin(
    start: StreamOffsets, end: StreamOffsets, *, is_first: bool = False
) -> dict[MessageQueue, int]:
    """Return the begin of a micro-batch, for each queue of its end.

    Args:
        start: Spark's start of the batch; in the first batch of a restarted query, a new initial offset.
        end: the planned end.
        is_first: whether it is the query's first batch.

    Raises:
        ConfigError: neither has a queue's begin.
    """
    if start == end:
        return dict(end.next)
    if is_first and end.initial:
        return {queue: end.initial[queue] for queue in end.next}
    begin = {**end.new, **start.next, **end.begin}
    if unknown := sorted(end.next.keys() - begin.keys()):
        raise ConfigError(f"the checkpoint does not say where to begin {place(unknown[0])}")
    return {queue: begin[queue] for queue in end.next}


def offsets_of_progress(given: Any) -> StreamOffsets | None:
    """Parse offsets that Spark reports, as text or JSON. None: they are not this source's."""
    try:
        tree = json.loads(given) if isinstance(given, str) else given
        return StreamOffsets.from_json(tree) if isinstance(tree, dict) else None
    except ValueError:  # the text "None", or another source's
        return None


def _check_version(version: Any) -> None:
    major, dot, minor = str(version).partition(".")
    if not (dot and major.isdigit() and minor.isdigit()):
        raise ConfigError(
            f"the checkpoint has no offsets of format rocketmq (version {version!r}): give the query another "
            "checkpointLocation"
        )
    if major != _MAJOR:
        raise ConfigError(
            f"the checkpoint has offsets of version {version}, this is rmqtools with version {VERSION}: "
            "install the rmqtools that wrote it, or give the query another checkpointLocation"
        )


def _tree(offsets: Mapping[MessageQueue, int]) -> Any:
    return json.loads(format_numbers(offsets))


def _marks_tree(marks: Mapping[MessageQueue, QueueMark]) -> Any:
    tree = _tree(dict.fromkeys(marks, 0))
    for queue, mark in marks.items():
        brokers = tree[queue.topic]
        brokers[queue.broker_name][str(queue.queue_id)] = {"offset": mark.offset, "time": mark.stored_ms}
    return tree


def _parse_marks(tree: Any) -> dict[MessageQueue, QueueMark]:
    return {
        MessageQueue(topic, broker_name, int(queue_id)): QueueMark(int(mark["offset"]), int(mark["time"]))
        for topic, brokers in tree.items()
        for broker_name, queues in brokers.items()
        for queue_id, mark in queues.items()
    }


def _parse(tree: Any) -> dict[MessageQueue, int]:
    if tree == {}:
        return {}
    return parse_numbers(json.dumps(tree), what="offset", lowest=0, remedy="0 or more")
