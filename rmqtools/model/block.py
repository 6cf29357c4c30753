"""A block: stored messages of a queue as the broker sent them, not decoded."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from rmqtools.model.queue import MessageQueue

CorruptBody: TypeAlias = Literal["fail", "raw", "null"]
"""How a range read handles a message whose body cannot be read:

- ``fail``: raises :class:`rmqtools.errors.CorruptBodyError`, which names queue and queue offset;
- ``raw``: gives the bytes as they are stored; ``sys_flag`` keeps the compressed bit, which others lose;
- ``null``: gives a row without body, or a message whose ``body`` raises that error. It hides no
  :class:`rmqtools.errors.BodyTooLargeError`: a setting of the reader decides about that, not the message.

With ``raw`` and ``null`` a message whose head is broken is skipped, and a warning ``message_passed_over``
is logged; with ``fail`` it raises :class:`rmqtools.errors.ProtocolError`.
"""

CORRUPT_BODY_CHOICES: Final = get_args(CorruptBody)
LARGE_MESSAGE_BYTES: Final = 32 * 1024  # from here on, copying a message costs more than a block of its own
MAX_DECOMPRESSED_BYTES = 16 * 1024 * 1024  # of one body; upstream has no limit


@dataclass(frozen=True, slots=True)
class MessageBlock:
    """Stored messages of one queue, back to back, in the order of their queue offsets.

    Attributes:
        queue: the queue they were pulled from.
        buffer: the stored messages' bytes; may contain more than the messages of ``starts``.
        starts: the position of each message in ``buffer``, ascending.
        next_offset: the queue offset to continue at; larger than the last message's plus one where
            the broker skipped a gap.
        max_decompressed_bytes: the size up to which a body is decompressed; the reading client's setting.
    """

    queue: MessageQueue
    buffer: bytes
    starts: Sequence[int]
    next_offset: int
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES

    def __len__(self) -> int:
        return len(self.starts)
