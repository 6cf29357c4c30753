"""The blocking StagedWrites, written by ``python -m tools.blocking_classes``.

Change the class of :mod:`rmqtools.aio` instead, and run the program again. One file because it is one class.
"""

from collections.abc import Sequence

from rmqtools.model.queue import QueueRange
from rmqtools.model.staged import StagedCommit, StagedStatus
from rmqtools.sync.handwritten.staged_writes import BlockingStagedWrites


class StagedWrites(BlockingStagedWrites):
    """Stores rows that many processes have staged in a topic: each row of a commit once, and no other row.

    Processes send rows to the staging topic and report the offset of each acknowledged row. One process
    commits: its decision for a number is final. If a commit is called again, also by another process, it
    only finishes the copy, and compares the rows. Rows of a queue keep their order. Use ``with``, or
    call start and close. New in 0.3.0.

    Safe to share between threads.

    Args:
        producer: a started producer, without ``linger`` and ``enable_trace``; it stays open.
        topic: the topic that gets the rows.
        staging_topic: a topic for staged rows alone; :meth:`prepare` makes it.
        writer: name of the write, the same after a restart, and another one for another write. Writes to
            another topic may have the same name.
        settle_seconds: as of :class:`ExactAppender`.
        is_recurring: whether this writer has more commits than one. Then brokers keep the number of the last
            one, and where it was decided, as offsets of a group, also when the decision has expired; a start
            reads no earlier decisions. Without it, a commit without rows decides nothing.

    Raises:
        ConfigError: by the constructor: a setting of the producer, or a value above.
    """

    __module__ = "rmqtools"

    def start(self) -> None:
        """Check that the producer is started."""
        super().start()

    def prepare(self, *, longest_outage: float = 24 * 3600.0) -> None:
        """Make the missing topics, and check that the target can be written to exactly.

        The staging topic gets the queues of the target on each broker; of those that the target does not
        have any more, staged rows can still be read. Beside it there is
        ``RMQTOOLS_DECISIONS-<staging_topic>``.

        Args:
            longest_outage: seconds after which a commit must still be possible to finish; compared with how
                long brokers keep messages, if their settings show it.

        Raises:
            ConfigError: a target whose end cannot be trusted (see :meth:`ExactAppender.resume`), a broker
                that keeps messages for less than ``longest_outage``, or a staging topic of version 0.3.0.
            UnsupportedError: the broker is behind a proxy.
            TopicNotFoundError, PermissionDeniedError: there is no such target, or it may not be written.
            RemotingError: no answer within ``request_timeout``.
        """
        self._bridge.run(lambda: self._writes.prepare(longest_outage=longest_outage))

    def commit(
        self, batch: int, ranges: Sequence[QueueRange], *, digest: int | None = None, keep_first: bool = False
    ) -> StagedCommit:
        """Decide which rows count for a number, and return when all of them are stored in the target.

        The first call with a number decides. Later calls, also of other processes, finish the copy, and
        succeed if they have the same rows. May be called again after every error and every crash. Waits as
        long as a broker is down or does not answer, and up to a minute for the lock of a process that died.

        Args:
            batch: number of the commit, 0 or more; it rises.
            ranges: acknowledged rows in queues of the staging topic.
            digest: a number below 2**128 that depends on the rows, and not on their order, as
                ``SendReport.digest``; the same for the same rows. None: rows are compared by their number.
            keep_first: whether a call with other rows succeeds and drops them, if no later commit was
                decided: for rows with other values at each run. If rows were added meanwhile, they are lost.

        Raises:
            MessageRejectedError: a negative number, or more ranges than a message can hold.
            ConfigError: the target lacks a queue, its end cannot be trusted, or the topic of decisions has
                been missing for a minute.
            DataLossError: decided rows have expired in the staging topic, or were lost with its broker:
                :meth:`give_up` ends the commit without them.
            ExactAppendError: the commit was decided with other rows; its decision was lost; another process
                uses this writer's name; or marks in the target contradict the decision.
            SendError: a broker refuses a row or a record.
        """
        return self._bridge.run(
            lambda: self._writes.commit(batch, ranges, digest=digest, keep_first=keep_first)
        )

    def give_up(self, batch: int) -> None:
        """End a commit that cannot be finished: later calls of :meth:`commit` with this number copy nothing.

        Rows that are copied already stay. First end the processes that commit with this writer's name.

        Args:
            batch: the last commit that was decided; earlier ones are finished.

        Raises:
            ConfigError: it is not the last one, or nothing is decided.
        """
        self._bridge.run(lambda: self._writes.give_up(batch))

    def status(self) -> StagedStatus:
        """Return the progress of the last commit of this writer."""
        return self._bridge.run(lambda: self._writes.status())

    def close(self) -> None:
        """Do nothing: each commit releases what it has taken. The producer stays open.

        May be called at any time, in any state. Interrupting a call ends only its waiting.
        """
        super().close()
