"""Consumer offsets in a file of this machine: members of a broadcasting group each have their own.

The file is what the Java client writes, and is replaced as a whole, so that it is never half written; the one
before stays beside it as ``.bak`` and is read where the file is torn or missing. Source of the rules:
LocalFileOffsetStore, OffsetSerializeWrapper (Java client).
"""

import asyncio
import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from rmqtools.config_consumer import ConsumerConfig
from rmqtools.errors import ConfigError, ProtocolError, RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.queue import MessageQueue
from rmqtools.protocol.bodies import format_body, parse_body

log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetSerializeWrapper:
    """What the file holds."""

    offset_table: Mapping[MessageQueue, int] = field(default_factory=dict)


def default_path(client_id: str, group: str) -> Path:
    """Where the Java client keeps it, too."""
    return Path.home() / ".rocketmq_offsets" / client_id / group / "offsets.json"


def with_stable_name(config: ConsumerConfig) -> ConsumerConfig:
    """Broadcasting: the name that the offset file is found by again.

    Source: changeInstanceNameToPID (Java client).
    """
    if config.is_broadcasting and config.instance_name is None:
        return replace(config, instance_name="DEFAULT")
    return config


class LocalFileOffsetStore:
    """Offsets in a file. Queues have wire names."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offsets = _load(path)
        self._stored = dict(self._offsets)
        self._writing = threading.Lock()  # a write goes on when the task that asked for it is cancelled

    def update(self, queue: MessageQueue, offset: int, *, increase_only: bool = False) -> None:
        """See :class:`OffsetStore`."""
        if not increase_only or offset > self._offsets.get(queue, -1):
            self._offsets[queue] = offset

    def read_memory(self, queue: MessageQueue) -> int | None:
        """See :class:`OffsetStore`."""
        return self._offsets.get(queue)

    def offset_for_pull(self, queue: MessageQueue) -> int | None:
        """None: the broker has nothing to do with it."""
        return None

    async def read_store(self, queue: MessageQueue) -> int | None:
        """See :class:`OffsetStore`."""
        return self._offsets.get(queue)

    async def persist(self, queues: Iterable[MessageQueue], *, again: bool = False) -> None:
        """See :class:`OffsetStore`. Whatever ``queues`` are, the whole file is written; once is enough."""
        try:
            await self._store()
        except OSError as error:
            log.warning("consumer_offsets_not_stored", path=str(self._path), reason=str(error))

    async def commit(self, offsets: Mapping[MessageQueue, int]) -> None:
        """See :class:`OffsetStore`."""
        self._offsets.update(offsets)
        try:
            await self._store()
        except OSError as error:
            raise RocketMQError(f"offsets were not stored in {self._path}: {error}") from error

    def doubt(self, broker_name: str) -> None:
        """Nothing: the file is not the broker's."""

    def remove(self, queue: MessageQueue) -> None:
        """Keep it: the file is the only place where this member's offsets are."""

    def noted(self) -> dict[MessageQueue, int]:
        """See :class:`OffsetStore`."""
        return dict(self._offsets)

    async def _store(self) -> None:
        if self._offsets != self._stored:
            await asyncio.to_thread(self._write)

    def _write(self) -> None:
        """On a thread; the last of several at the same time writes the newest offsets."""
        with self._writing:
            offsets = dict(self._offsets)
            _replace(self._path, offsets)
            self._stored = offsets


def _load(path: Path) -> dict[MessageQueue, int]:
    """The offsets of the file, of its backup where it is torn; none where there is neither.

    Raises:
        ConfigError: there is a file, and neither it nor its backup can be read: starting without it
            would pass messages over, or bring all of them again.
    """
    backup = path.with_name(path.name + ".bak")
    for candidate in (path, backup):
        try:
            return dict(parse_body(OffsetSerializeWrapper, candidate.read_bytes()).offset_table)
        except FileNotFoundError:
            continue
        except (OSError, ProtocolError) as error:
            log.warning("consumer_offsets_unreadable", path=str(candidate), reason=str(error))
    if path.exists() or backup.exists():
        raise ConfigError(f"the offset file {path} and its backup are unreadable: mend or remove them")
    return {}


def _replace(path: Path, offsets: Mapping[MessageQueue, int]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".tmp")
    with fresh.open("wb") as file:
        file.write(format_body(OffsetSerializeWrapper(offset_table=offsets)))
        file.flush()
        os.fsync(file.fileno())
    if path.exists():
        path.replace(path.with_name(path.name + ".bak"))  # for a moment the only one: then it is read
    fresh.replace(path)
