"""The offsets of a stream as Spark keeps them in a checkpoint; pure.

    {
        "begin": {"topic": {"broker-a": {"1": 0}}},
        "offsets": {"topic": {"broker-a": {"0": 42, "1": 7}}},
        "version": "1.1"
    }

``offsets`` is the next offset to read per queue. ``begin`` says where the micro-batch that ends here begins,
for the queues of which the offsets before do not tell: all in the first batch (Spark does not store what
``initialOffset`` gave), later those that are new or where offsets were lost. So a batch that Spark runs
again, also after a crash in the first one, reads the same messages.

Versions: 1.1 added ``begin``. A minor version adds what older readers may pass over; a major one does not.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rmqtools import MessageQueue
from rmqtools.errors import ConfigError
from spark_connector.queue_json import format_numbers, parse_numbers, place

VERSION: Final = "1.1"
_MAJOR: Final = VERSION.split(".")[0]


@dataclass(frozen=True, slots=True)
class StreamOffsets:
    """How far a stream is: the next offset of every queue, and the begins of the batch that ends here."""

    next: Mapping[MessageQueue, int]
    begin: Mapping[MessageQueue, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """What Spark is given: equal offsets give equal text, every level is sorted."""
        return {"begin": _tree(self.begin), "offsets": _tree(self.next), "version": VERSION}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> "StreamOffsets":
        """What Spark gives back, perhaps from the checkpoint of another version.

        Raises:
            ConfigError: another major version, or no offsets of this source.
        """
        _check_version(given.get("version"))
        try:
            return cls(_parse(given["offsets"]), _parse(given.get("begin", {})))
        except (KeyError, ValueError) as error:
            raise ConfigError(f"the checkpoint's offsets cannot be read: {error}") from None


def batch_begin(start: StreamOffsets, end: StreamOffsets) -> dict[MessageQueue, int]:
    """Where a micro-batch begins, per queue of its end.

    Args:
        start: what Spark says it begins at; in the first batch of a restarted query a newly made one.
        end: what was planned for it.

    Raises:
        ConfigError: a queue's begin is in neither.
    """
    if start == end:
        return dict(end.next)
    begin = {**start.next, **end.begin}
    if unknown := sorted(end.next.keys() - begin.keys()):
        raise ConfigError(f"the checkpoint does not say where to begin {place(unknown[0])}")
    return {queue: begin[queue] for queue in end.next}


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


def _parse(tree: Any) -> dict[MessageQueue, int]:
    if tree == {}:
        return {}
    return parse_numbers(json.dumps(tree), what="offset", lowest=0, remedy="0 or more")
