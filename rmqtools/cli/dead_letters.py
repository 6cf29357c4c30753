"""Dead letters: as rows of a file, as messages to send again, and the progress of a replay."""

import fcntl
import hashlib
import json
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from rmqtools import Message, MessageExt, MessageQueue, QueueRange
from rmqtools.cli.output_messages import message_row
from rmqtools.errors import ConfigError, RocketMQError
from rmqtools.model.copy_message import copy_message, origin_topic
from rmqtools.model.names import without_this_namespace
from rmqtools.model.queue import queue_name
from rmqtools.safe_file import PRIVATE, open_new_descriptor


def as_row(message: MessageExt) -> dict[str, Any]:
    """Make a line of an export: every stored field, the body in base64, RocketMQ's own properties apart."""
    row = message_row(message, as_base64=True)
    own = {name: value for name, value in message.properties.items() if name not in row["properties"]}
    return row | {
        "origin_topic": origin_topic(message),
        "sys_flag": message.sys_flag,
        "reserved_properties": own,
    }


def replayed(message: MessageExt, to_topic: str | None, namespace: str | None) -> Message:
    """Make the message to send again.

    Raises:
        RocketMQError: the message does not say where it came from, and no topic is given.
    """
    origin = to_topic or origin_topic(message)
    if origin is None:
        raise RocketMQError(
            f"message {message.msg_id} at offset {message.queue_offset} does not say which topic it came "
            "from: give --to-topic"
        )
    return copy_message(message, without_this_namespace(origin, namespace))


@dataclass(slots=True)
class Progress:
    """The progress of a replay of a topic: per queue, the offset to continue at, and offsets beyond it.

    Attributes:
        topic: the topic that is replayed.
        next_offsets: where each queue is continued.
        singles: offsets that were sent by a choice (--key, --where) while messages before them were not.
    """

    topic: str
    next_offsets: dict[str, int] = field(default_factory=dict)
    singles: dict[str, set[int]] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path, topic: str) -> "Progress":
        """Read the file of :meth:`persist`. No file means that the replay has not begun.

        Raises:
            ConfigError: the file has another format, or belongs to another topic.
        """
        try:
            text = path.read_text(encoding="utf-8")
            given: dict[str, Any] = json.loads(text) if text else {"topic": topic, "next": {}}
            progress = cls(
                given["topic"],
                {str(queue): int(offset) for queue, offset in given["next"].items()},
                {str(queue): set(map(int, offsets)) for queue, offsets in given.get("sent", {}).items()},
            )
        except FileNotFoundError:
            return cls(topic)
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise ConfigError(
                f"{path} does not say how far a replay is: {error!r}: give another file"
            ) from error
        if progress.topic != topic:
            raise ConfigError(f"{path} is about topic {progress.topic!r}, not {topic!r}: give another file")
        return progress

    def rest_of(self, range_: QueueRange) -> QueueRange:
        """Return the part of a queue's full range that is still to be sent.

        If a queue was recreated and has grown beyond the noted offset, this cannot be noticed: its
        messages before that offset are skipped.

        Raises:
            ConfigError: the queue ends before the noted offset, so it is not the queue that was replayed.
        """
        noted = self._noted(range_.queue)
        if noted > range_.end:
            place = queue_name(range_.queue)
            raise ConfigError(
                f"queue {place} of {self.topic} ends at offset {range_.end}, before {noted}, where the "
                "replay is to go on: the topic was made anew; give another --progress file"
            )
        return range_.starting_at(max(noted, range_.begin))

    def count_expired(self, range_: QueueRange) -> int:
        """Count the messages of a queue that the broker deleted before they were replayed."""
        noted = self._noted(range_.queue)
        return max(range_.begin - noted, 0) if noted else 0

    def note(self, message: MessageExt) -> None:
        """Note that a message was sent, with all before it in its queue."""
        key = queue_name(message)
        self.next_offsets[key] = message.queue_offset + 1
        if key in self.singles:
            self.singles[key] = {offset for offset in self.singles[key] if offset > message.queue_offset}

    def note_single(self, message: MessageExt) -> None:
        """Note that a message was sent, and maybe not those before it."""
        self.singles.setdefault(queue_name(message), set()).add(message.queue_offset)

    def has_sent(self, message: MessageExt) -> bool:
        """Return whether a message beyond the next offset was sent by a choice."""
        return message.queue_offset in self.singles.get(queue_name(message), ())

    def format(self) -> str:
        """Return the text of a progress file."""
        sent = {queue: sorted(offsets) for queue, offsets in self.singles.items() if offsets}
        parts = {"topic": self.topic, "next": self.next_offsets} | ({"sent": sent} if sent else {})
        return json.dumps(parts, indent=1, sort_keys=True) + "\n"

    def _noted(self, queue: MessageQueue) -> int:
        return self.next_offsets.get(queue_name(queue), 0)


def default_progress(topic: str, *target: object) -> Path:
    """Return the progress file of a replay that names none: the same for the same topic and ``target``."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    digest = hashlib.sha256("\n".join(map(str, target)).encode()).hexdigest()[:16]
    return Path(state) / "rmqtools" / "replay" / f"{topic}-{digest}.json"


class ProgressFile:
    """A progress file that one replay at a time may use: the file itself is locked.

    Each write replaces the file by a locked one, so that a second replay either finds a lock, or takes the
    lock of a file that has been replaced, which it notices.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        """Take the lock.

        Raises:
            ConfigError: another replay uses the file, or it cannot be made.
        """
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            while not self._is_locked():
                pass
        except BlockingIOError as error:
            raise ConfigError(
                f"{self._path} is in use by another replay, and two would send every message twice: wait "
                "until it has ended, or give another --progress file"
            ) from error
        except OSError as error:
            raise ConfigError(
                f"no progress can be kept in {self._path}: {error}: give --progress FILE, or --no-progress"
            ) from error
        return self

    def write(self, progress: Progress) -> None:
        """Write the progress in one step.

        Raises:
            RocketMQError: the file cannot be written; the text contains the progress.
        """
        text, part = progress.format(), self._path.with_name(self._path.name + ".part")
        try:
            descriptor = open_new_descriptor(part, mode=PRIVATE)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            os.write(descriptor, text.encode())
            part.replace(self._path)
        except OSError as error:
            raise RocketMQError(f"{self._path} cannot be written: {error}; it should hold {text}") from error
        self._close()
        self._descriptor = descriptor

    def __exit__(self, *_: object) -> None:
        if self._descriptor is not None and not os.fstat(self._descriptor).st_size:
            self._path.unlink(missing_ok=True)  # nothing was noted
        self._close()

    def _is_locked(self) -> bool:
        """Try to lock; return False if another replay has replaced the file meanwhile."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._descriptor = os.open(self._path, flags, PRIVATE)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with suppress(FileNotFoundError):
                if os.path.samestat(self._path.lstat(), os.fstat(self._descriptor)):
                    return True
        except BaseException:
            self._close()
            raise
        self._close()
        return False

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
