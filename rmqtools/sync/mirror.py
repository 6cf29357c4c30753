"""The blocking Mirror, written by ``python -m tools.blocking_classes``.

Change the class of :mod:`rmqtools.aio` instead, and run the program again. One file because it is one class.
"""

from rmqtools.model.mirror import MovedOffset, QueueMirror
from rmqtools.sync.handwritten.mirror import BlockingMirror


class Mirror(BlockingMirror):
    """Copies topics to another cluster, or to other topics: each message is stored once, in its order.

    Bodies, tags, keys, properties and the order of each queue are kept; a copy has two properties more, where
    it came from and which way. A mirror that was killed goes on where it was, without a store of its own. Use
    ``with``, or call start and close. New in this release.

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
        """Return how far the copy of each queue is; empty before the first :meth:`run`."""
        return self._mirror.progress()

    def run(self, *, follow: bool = False, until_ms: int | None = None) -> list[QueueMirror]:
        """Copy all messages that are there now, and return what was done.

        Args:
            follow: go on with new messages, until the call is cancelled.
            until_ms: copy messages stored before this time, in ms since 1970; waits for it.

        Raises:
            ConfigError: a target whose end cannot be trusted; see :meth:`rmqtools.ExactAppender.resume`.
            ExactAppendError: another mirror of this name is at work, or the target holds what it cannot.
            DataLossError: messages expired at the source before they were copied.
            SendError: the target refuses a message.
        """
        return self._bridge.run(self._mirror.run(follow=follow, until_ms=until_ms))

    def move_group(self, group: str, *, dry_run: bool = False) -> list[MovedOffset]:
        """Set a group's offsets on the copies to the messages that it would consume next at the source.

        Args:
            group: a group without members at the target.
            dry_run: only return them.

        Returns:
            Each queue in which the group has an offset. Where its next message is not copied yet, the end of
            the copy: messages that are copied later may be consumed again.

        Raises:
            ConfigError: the group has members at the target: they would overwrite the offsets.
        """
        return self._bridge.run(self._mirror.move_group(group, dry_run=dry_run))
