"""The blocking Mirror, written by ``python -m tools.blocking_classes``.

Change the class of :mod:`rmqtools.aio` instead, and run the program again. One file because it is one class.
"""

from rmqtools.model.mirror import MovedOffset, QueueMirror
from rmqtools.sync.handwritten.mirror import BlockingMirror


class Mirror(BlockingMirror):
    """Copies topics to another cluster, or to other topics: each message is stored once, in its order.

    Bodies, tags, keys, properties and the order of each queue are kept; a copy has two more properties, for
    its origin and its way. A mirror that was killed continues where it stopped, without a store of its own.
    Use ``with``, or call start and close. New in 0.3.0.

    One thread runs it, any may ask for its progress.

    Raises:
        ConfigError: by the constructor, for settings that are not valid.
    """

    __module__ = "rmqtools"

    def start(self) -> None:
        """Connect to both clusters, and compare the topics. Writes nothing.

        An interrupted start (Ctrl-C) closes it.

        Raises:
            ConfigError: a topic that cannot be copied, or clusters of the same name; names the remedy.
            TopicNotFoundError, PermissionDeniedError: a topic does not exist, or may not be used.
            UnsupportedError: a cluster is behind a proxy.
        """
        super().start()

    def close(self) -> None:
        """Stop copying, and close the connections.

        May be called at any time, in any state. Interrupting a call ends only its waiting.
        """
        super().close()

    def progress(self) -> list[QueueMirror]:
        """Return the progress of each queue; empty before the first :meth:`run`."""
        return self._mirror.progress()

    def run(self, *, follow: bool = False, until_ms: int | None = None) -> list[QueueMirror]:
        """Copy all messages that are stored now, and return the progress of each queue.

        Waits for queues that were copied before and are not there, because a broker is down. An error stops
        the queues of its topic; it is raised when the other topics are copied.

        Args:
            follow: go on with new messages, and with queues that are added, until the call is cancelled.
            until_ms: copy messages stored before this time, in ms since 1970, by the clocks of the source's
                brokers; waits until then.

        Raises:
            ConfigError: a target whose end cannot be trusted (see :meth:`rmqtools.ExactAppender.resume`),
                or topics without as many queues.
            ExactAppendError: another mirror of this name is running, or the target's marks contradict it.
            DataLossError: messages expired at the source before they were copied, or its topic was deleted
                and made again, or its broker has lost its end.
            SendError: the target refuses a message; see ``refused`` of :class:`rmqtools.MirrorConfig`.
        """
        return self._bridge.run(lambda: self._mirror.run(follow=follow, until_ms=until_ms))

    def move_group(self, group: str, *, dry_run: bool = False) -> list[MovedOffset]:
        """Set a group's offsets on the copies, so that it goes on where it is at the source.

        Args:
            group: a group without members at the target.
            dry_run: only return the new offsets.

        Returns:
            Each queue in which the group has an offset, with the new offset: behind the last copy that it has
            consumed. Messages of other producers behind it are consumed, too.

        Raises:
            ConfigError: a copy is not as far as the group, or how far is not known; failed messages wait in
                the group's retry topic; or the group has members at the target, which would overwrite the
                offsets.
            BrokerError: a broker does not list the group's members.
        """
        return self._bridge.run(lambda: self._mirror.move_group(group, dry_run=dry_run))
