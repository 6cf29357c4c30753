"""One queue of a staged commit: copies its rows, each with a mark of where it was staged."""

from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.exact.copy_lane import MARK, CopyLane, Portion
from rmqtools.engine.exact.queue_writer import QueueWriter
from rmqtools.model.queue import MessageQueue
from rmqtools.model.staged import StagedQueue
from rmqtools.policy.exact_append import Since
from rmqtools.policy.mirror import kept_properties
from rmqtools.policy.staged import rest_of
from rmqtools.protocol.messages.copied import StoredParts


class StagedLane(CopyLane):
    """The copy of a commit's rows in one queue.

    Attributes:
        copied: rows that were copied.
    """

    def __init__(
        self, client: ClientCore, part: StagedQueue, writer: QueueWriter, *, request_bytes: int
    ) -> None:
        super().__init__(client, part.source, writer, request_bytes=request_bytes)
        self._part = part
        self._since = Since(part.since, part.ranges[0].begin)
        self._last: int | None = None
        self.copied = 0

    @property
    def target(self) -> MessageQueue:
        """The queue that gets the rows."""
        return self._part.target

    @property
    def end(self) -> int:
        """The offset behind the last row that is known to be stored there."""
        return self._writer.tail.end

    def begin(self) -> None:
        """Begin with the first row: nothing can have been sent."""
        self._writer.begin(self._since)

    async def take_up(self) -> None:
        """Find out what is copied already; errors as of :meth:`QueueWriter.resume`."""
        following = await self._writer.resume(self._since)
        self._last = None if following is None else following - 1

    async def copy(self) -> None:
        """Copy the rest; errors as of :meth:`QueueWriter.append`.

        Raises:
            DataLossError: rows expired before they were copied.
        """
        await self._copy(rest_of(self._part, self._last))

    def _copied_properties(self, parts: StoredParts) -> bytes | None:
        kept, _ = kept_properties(parts.properties)
        mark = self._writer.mark_text(parts.queue_offset).encode()
        kept.append(b"%s\x01%s\x02" % (MARK, mark))
        return b"\x02".join(kept)

    def _passed(self, portion: Portion) -> None:
        self.copied += len(portion.positions)
