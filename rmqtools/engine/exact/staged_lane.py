"""One queue of a staged commit: copies its rows, each with a mark of where it was staged."""

from rmqtools.engine.exact.copy_lane import MARK, CopyLane, Portion
from rmqtools.engine.exact.queue_writer import QueueWriter
from rmqtools.engine.producer.producer import Producer
from rmqtools.model.queue import MessageQueue
from rmqtools.model.staged import StagedQueue
from rmqtools.policy.exact_append import Since
from rmqtools.policy.mirror import kept_properties
from rmqtools.policy.staged import rest_of
from rmqtools.protocol.messages.copied import StoredParts


class StagedLane(CopyLane):
    """The copy of a commit's rows to one queue.

    Attributes:
        writer: the writer of that queue.
        copied: rows that were copied.
    """

    def __init__(
        self, producer: Producer, staging: str, target: MessageQueue, *, name: str, settle_seconds: float
    ) -> None:
        source = MessageQueue(staging, target.broker_name, target.queue_id)
        self.writer = QueueWriter(
            producer,
            target,
            writer=name,
            origin=f"{staging}/{target.broker_name}/{target.queue_id}",
            settle_seconds=settle_seconds,
        )
        request_bytes = producer.config.max_batch_bytes
        super().__init__(producer._client, source, self.writer, request_bytes=request_bytes)
        self._rest: list[tuple[int, int]] = []
        self.copied = 0

    def begin(self, part: StagedQueue) -> None:
        """Begin with the first row: nothing can have been sent."""
        self.writer.begin(Since(part.since, part.ranges[0].begin))
        self._rest = rest_of(part, None)

    async def take_up(self, part: StagedQueue) -> None:
        """Find out what is copied already; errors as of :meth:`QueueWriter.resume`."""
        following = await self.writer.resume(Since(part.since, part.ranges[0].begin))
        self._rest = rest_of(part, None if following is None else following - 1)

    async def copy(self) -> None:
        """Copy the rest; errors as of :meth:`QueueWriter.append`.

        Raises:
            DataLossError: rows expired before they were copied.
        """
        await self._copy(self._rest)

    def _copied_properties(self, parts: StoredParts) -> bytes | None:
        kept, _ = kept_properties(parts.properties)
        mark = self.writer.mark_text(parts.queue_offset).encode()
        kept.append(b"%s\x01%s\x02" % (MARK, mark))
        return b"\x02".join(kept)

    def _passed(self, portion: Portion) -> None:
        self.copied += len(portion.positions)
