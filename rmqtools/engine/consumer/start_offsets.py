"""Finds the start offset of a queue that a member newly holds.

Source of the rules: computePullFromWhereWithException of RebalancePushImpl and RebalanceLitePullImpl (Java
client).
"""

from rmqtools.engine.admin.queues import QueueAdmin
from rmqtools.engine.group.member import Member
from rmqtools.log import get_logger
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.start_offset import StartAt, checked_offset, known_offset, start_offset

log = get_logger(__name__)

_HALF_AN_HOUR_MS = 30 * 60 * 1000


class StartOffsets:
    """Reads a group's committed offset; without one, uses ``consume_from``."""

    def __init__(self, member: Member, queues: QueueAdmin) -> None:
        self._member = member
        self._queues = queues

    async def find(self, queue: MessageQueue) -> int:
        """Return the start offset of a queue.

        Raises:
            RocketMQError: it is currently unknown.
        """
        offsets = self._member.offsets
        noted = offsets.read_memory(queue)  # kept for assigned queues; removed for all others
        stored = await offsets.read_store(queue) if noted is None else noted
        start = await self._start(queue, stored)
        if stored is not None and known_offset(stored) is None:
            log.warning(
                "stored_offset_ignored",
                group=self._member.group,
                queue=str(queue),
                stored=stored,
                chosen=start,
            )
        return start

    async def _start(self, queue: MessageQueue, stored: int | None) -> int:
        start = start_offset(stored, self._member.config.consume_from, queue.topic)
        if start is StartAt.MAX_OFFSET:
            return checked_offset(await self._queues.max_offset(queue))
        if start is StartAt.SEARCH_TIMESTAMP:
            return checked_offset(await self._queues.search_offset(queue, self._consume_timestamp_ms()))
        assert isinstance(start, int)
        return start

    def _consume_timestamp_ms(self) -> int:
        given = self._member.config.consume_timestamp_ms
        return self._member.started_ms - _HALF_AN_HOUR_MS if given is None else given
