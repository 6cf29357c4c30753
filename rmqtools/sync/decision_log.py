"""The blocking DecisionLog, written by ``python -m tools.blocking_classes``.

Change the class of :mod:`rmqtools.aio` instead, and run the program again. One file because it is one class.
"""

from rmqtools.model.decision import Decision
from rmqtools.sync.handwritten.decision_log import BlockingDecisionLog


class DecisionLog(BlockingDecisionLog):
    """Decisions that several processes share: of all records of a key, the first one stored counts.

    Each process appends its record and reads up to it, so all of them see the same first one. Use ``async
    with``, or call start and close. It keeps the first record of every key in memory. New in 0.3.0.

    A decision holds as long as the topic keeps its messages: give the topic a retention that is long enough,
    and do not delete it. Only records written by this class count.

    Safe to share between threads.

    Args:
        producer: a started producer; it stays open.
        topic: a topic with one queue, for decisions alone.
    """

    __module__ = "rmqtools"

    def start(self) -> None:
        """Find the queue of the topic, and where it begins.

        Raises:
            ConfigError: the topic does not have exactly one queue.
            TopicNotFoundError, PermissionDeniedError: there is no such topic, or it may not be used.
        """
        super().start()

    def decide(self, key: str, record: bytes) -> Decision:
        """Append a record of a key, and return the key's first record, also if another process wrote it.

        May be repeated: a later call for the same key returns the same record.

        Args:
            key: a word without spaces; the message has it as its key.
            record: at least one byte.

        Raises:
            MessageRejectedError: no key or no record; nothing was sent.
            UnknownOutcomeError: no answer came: call this again, or :meth:`look_up`.
            SendError: the record is not stored and decides nothing.
            RemotingTimeoutError: the record is stored, but cannot be read yet: call this again.
            DataLossError: records expired while they were read.
            ExactAppendError: the topic was made anew since, or its broker has lost its end.
        """
        return self._bridge.run(lambda: self._log.decide(key, record))

    def look_up(self, key: str) -> Decision | None:
        """Return the first record of a key; None: there is none so far.

        None is no decision: another process may decide a moment later. To decide, use :meth:`decide`.

        Raises:
            DataLossError: records expired while they were read.
            ExactAppendError: the topic was made anew since, or its broker has lost its end.
        """
        return self._bridge.run(lambda: self._log.look_up(key))

    def close(self) -> None:
        """Drop the records from memory. The producer stays open.

        May be called at any time, in any state. Interrupting a call ends only its waiting.
        """
        super().close()
