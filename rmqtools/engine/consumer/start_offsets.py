"""Finds the start offset of a queue that a member newly holds, and makes it the group's.

Source of the rules: computePullFromWhereWithException of RebalancePushImpl and RebalanceLitePullImpl (Java
client). Ours: the start is stored before anything is fetched. Java stores an offset once a message is
consumed or a long poll has ended, so a member that stops before, and one that takes its queue over, skip what
came meanwhile.
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

    def __init__(self, member: Member, queues: QueueAdmin, *, stores: bool = True) -> None:
        """Create it. ``stores``: starts become the group's offsets; False: the application stores offsets."""
        self._member = member
        self._queues = queues
        self._stores = stores

    async def find(self, queue: MessageQueue) -> int:
        """Return the start offset of a queue; it is noted and stored, so that no other start replaces it.

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
        if self._stores:
            offsets.update(queue, start)
            await offsets.persist([queue])
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
