"""Telling a consumer group how far a stream is: a courtesy for tools that show lag, never read back."""

from collections.abc import Mapping

from rmqtools import Admin, MessageQueue
from rmqtools.errors import ConfigError, RocketMQError
from rmqtools.log import get_logger
from spark_connector.queue_json import place

log = get_logger(__name__)


class GroupProgress:
    """Commits next-to-read offsets to one group; what has not changed is not sent again."""

    def __init__(self, admin: Admin, group: str) -> None:
        self._admin = admin
        self._group = group
        self._committed: dict[MessageQueue, int] = {}

    def check_unused(self) -> None:
        """Refuse a group that somebody consumes with: its members' commits and ours would undo each other.

        Raises:
            ConfigError: it has live members.
        """
        if members := self._members():
            raise ConfigError(
                f"option 'group' = {self._group!r}: commitOffsetsToGroup is refused while the group has live "
                f"members ({', '.join(members)}); stop them, or give the query a group of its own"
            )

    def commit(self, offsets: Mapping[MessageQueue, int]) -> None:
        """Commit what has changed; a failure is logged, the next commit tries again.

        Nothing is committed while the group has live members, which may have come after the query.
        """
        changed = {queue: at for queue, at in sorted(offsets.items()) if self._committed.get(queue) != at}
        if not changed:
            return
        try:
            members = self._members()
        except RocketMQError as error:
            log.warning("offsets_not_committed", group=self._group, reason=str(error))
            return
        if members:
            log.warning("offsets_not_committed", group=self._group, members=members)
            return
        for queue, at in changed.items():
            self._commit_one(queue, at)

    def _commit_one(self, queue: MessageQueue, offset: int) -> None:
        try:
            self._admin.update_consumer_offset(self._group, queue, offset)
            self._committed[queue] = offset
        except RocketMQError as error:  # of a queue that is gone, for one
            log.warning("offset_not_committed", group=self._group, queue=place(queue), reason=str(error))

    def _members(self) -> list[str]:
        connection = self._admin.fetch_consumer_connection(self._group)
        return [member.client_id for member in connection.connection_set]
