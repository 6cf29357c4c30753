"""Consumer offsets in a local file: each member of a broadcasting group has its own.

The file has the Java client's format. It is replaced as a whole, so it is never half written; the previous
version stays beside it as ``.bak`` and is read if the file is torn or missing. Source of the rules:
LocalFileOffsetStore, OffsetSerializeWrapper (Java client).

While the interpreter exits, executors accept no work: ``local_offset_store`` then writes on the loop's
thread.
"""

import asyncio
import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from pathlib import Path

from rmqtools.config.consumer import ConsumerConfig
from rmqtools.engine.group.offset_store import NotedOffsets
from rmqtools.errors import ConfigError, ProtocolError, RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.queue import MessageQueue
from rmqtools.model.record import record
from rmqtools.policy.start_offset import known_offset
from rmqtools.protocol.wire.bodies import format_body, parse_body
from rmqtools.safe_file import open_new_descriptor

log = get_logger(__name__)


@record
class OffsetSerializeWrapper:
    """Content of the file."""

    offset_table: Mapping[MessageQueue, int] = field(default_factory=dict)


def default_path(client_id: str, group: str) -> Path:
    """Path of the offset file, the same as the Java client's."""
    return Path.home() / ".rocketmq_offsets" / client_id / group / "offsets.json"


def with_stable_name(config: ConsumerConfig) -> ConsumerConfig:
    """For broadcasting, use an instance name that finds the same offset file after a restart.

    Source: changeInstanceNameToPID (Java client).
    """
    if config.is_broadcasting and config.instance_name is None:
        return replace(config, instance_name="DEFAULT")
    return config


class LocalFileOffsetStore(NotedOffsets):
    """Offsets in a file. Queues have wire names."""

    def __init__(self, path: Path) -> None:
        loaded = _load(path)
        super().__init__({queue: at for queue, at in loaded.items() if known_offset(at) is not None})
        self._loaded = loaded  # with the negative ones, which the next write leaves out
        self._path = path
        self._stored = dict(self._offsets)
        self._writing = threading.Lock()  # a write continues when the task that requested it is cancelled

    def offset_for_pull(self, queue: MessageQueue) -> int | None:
        """None: pulls carry no offset, because brokers do not store this group's."""
        return None

    async def read_store(self, queue: MessageQueue) -> int | None:
        """See :class:`OffsetStore`."""
        return self._offsets.get(queue, self._loaded.get(queue))

    async def persist(self, queues: Iterable[MessageQueue], *, again: bool = False) -> None:
        """See :class:`OffsetStore`. Writes the whole file once, for any ``queues``."""
        for queue in queues:
            self._note_latest(queue)
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

    def forget_stored(self, broker_name: str) -> None:
        """Do nothing: offsets are not stored on brokers."""

    def remove(self, queue: MessageQueue) -> None:
        """Keep the offset: this file is the only place that stores it."""

    async def _store(self) -> None:
        if self._offsets == self._stored:
            return
        try:
            writing = asyncio.get_running_loop().run_in_executor(None, self._write)
        except RuntimeError:  # the interpreter is exiting and executors accept no work
            self._write()
        else:
            await writing

    def _write(self) -> None:
        """Write the file, on a worker thread. The last of concurrent writes stores the newest offsets."""
        with self._writing:
            offsets = dict(self._offsets)
            if offsets == self._stored:  # by a write that waited for the lock before this one
                return
            _replace(self._path, offsets)
            self._stored = offsets


def _load(path: Path) -> dict[MessageQueue, int]:
    """Read the offsets from the file, or from its backup if the file is torn; empty if neither exists.

    Raises:
        ConfigError: files exist but none can be read. Starting without offsets would skip messages or
            deliver all of them again.
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
    with os.fdopen(open_new_descriptor(fresh), "wb") as file:
        file.write(format_body(OffsetSerializeWrapper(offset_table=offsets)))
        file.flush()
        os.fsync(file.fileno())
    if path.exists():
        path.replace(path.with_name(path.name + ".bak"))  # until the next line only the backup exists
    fresh.replace(path)
