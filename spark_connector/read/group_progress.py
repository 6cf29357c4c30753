"""Commits a stream's offsets to a consumer group, for tools that show lag. They are never read back."""

from collections.abc import Mapping
from typing import Any, Final

from rmqtools import Admin, MessageQueue
from rmqtools.clock import SYSTEM_CLOCK, Clock
from rmqtools.errors import ConfigError, RocketMQError
from rmqtools.log import get_logger
from spark_connector.options.queue_json import place

log = get_logger(__name__)

_RETRY_AFTER: Final = 5.0  # seconds; a broker that does not answer uses up 3 of them


class GroupProgress:
    """Commits next-to-read offsets to one group; sends only changed offsets.

    Args:
        admin: client that commits.
        group: consumer group.
        clock: times the retry of a failed commit.
    """

    def __init__(self, admin: Admin, group: str, clock: Clock = SYSTEM_CLOCK) -> None:
        self._admin = admin
        self._group = group
        self._clock = clock
        self._committed: dict[MessageQueue, int] = {}
        self._done: Any = None
        self._retry_at = 0.0
        self._logged: set[str] = set()

    def check_unused(self) -> None:
        """Refuse a group with live members: their commits and the stream's would overwrite each other.

        Raises:
            ConfigError: the group has live members.
        """
        if members := self._members():
            raise ConfigError(
                f"option 'group' = {self._group!r}: commitOffsetsToGroup is refused while the group has live "
                f"members ({', '.join(members)}); stop them, or give the query a group of its own"
            )

    def is_due(self, batch_end: Any) -> bool:
        """Return whether a batch's end is uncommitted, and the last failure is long enough ago to retry."""
        return batch_end != self._done and self._clock.monotonic() >= self._retry_at

    def commit(self, offsets: Mapping[MessageQueue, int], batch_end: Any) -> None:
        """Commit the offsets of a batch's end; a failure is logged, and retried after 5 s.

        Does nothing while the group has live members, which may join after the query's start.
        """
        if self._is_committed(offsets):
            self._done = batch_end
            self._logged.clear()
        else:
            self._retry_at = self._clock.monotonic() + _RETRY_AFTER

    def _is_committed(self, offsets: Mapping[MessageQueue, int]) -> bool:
        changed = {queue: at for queue, at in sorted(offsets.items()) if self._committed.get(queue) != at}
        if not changed:
            return True
        try:
            members = self._members()
            if members:
                self._log(f"the group has live members: {', '.join(members)}")
            return not members and self._are_committed(changed)
        except RocketMQError as error:
            self._log(str(error))
            return False

    def _are_committed(self, offsets: Mapping[MessageQueue, int]) -> bool:
        """Commit the offsets; False: a broker did not answer. A refusal, as for a deleted queue, is final."""
        done = True
        for queue, offset in offsets.items():
            try:
                self._admin.update_consumer_offset(self._group, queue, offset)
                self._committed[queue] = offset
            except RocketMQError as error:
                done = done and not error.retriable
                self._log(f"{place(queue)}: {error}")
        return done

    def _log(self, reason: str) -> None:
        """Log a failure once per batch."""
        if reason not in self._logged:
            self._logged.add(reason)
            log.warning("offsets_not_committed", group=self._group, reason=reason)

    def _members(self) -> list[str]:
        connection = self._admin.fetch_consumer_connection(self._group)
        return [member.client_id for member in connection.connection_set]
