"""The lock of a writer: an alarm for a second writer, and a clock for one that was paused.

A broker's lock is no fence. Brokers accept sends without it, forget it when they start again, keep it for
60 s after its holder died, and grant it to the same client id from any connection. So the id is random, and
the lock is renewed all the time; a writer whose lock is old does not send.
"""

import asyncio
import uuid

from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.group.queue_lock import QueueLocks
from rmqtools.errors import ExactAppendError
from rmqtools.log import get_logger
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.exact_append import LOCK_SECONDS, LockAge

log = get_logger(__name__)

_PAUSE = 0.5  # seconds between requests for a lock that another writer has
_PATIENCE = LOCK_SECONDS + 15.0  # seconds: a dead writer's lock ends before


class WriterLock:
    """The lock of one writer on one queue. ``group``: the wire name of the writer's group."""

    def __init__(self, client: ClientCore, queue: MessageQueue, group: str) -> None:
        self._client = client
        self._queue = queue
        self._group = group
        self._locks = QueueLocks(client, group, f"{client.client_ip}@{uuid.uuid4().hex}")
        self.age = LockAge()
        self.is_lost = False

    async def take(self, *, waits: bool) -> None:
        """Take the lock, once the broker answers.

        Args:
            waits: for a writer that died and still has it, for as long as brokers keep it.

        Raises:
            ExactAppendError: another writer has it.
        """
        now = self._client.clock.monotonic
        refused_at: float | None = None
        while not (granted := await self._request()):
            if granted is False:
                if refused_at is None:
                    refused_at = now()
                    log.info("writer_lock_awaited", group=self._group, queue=str(self._queue))
                if not waits or now() - refused_at > _PATIENCE:
                    self._lose()
                    raise self.error()
            await asyncio.sleep(_PAUSE)
        self.is_lost = False

    async def renew(self) -> None:
        """Renew the lock; if another writer has it, nothing may be sent any more.

        A lock that is old already is not renewed here: another writer may have had it since. The next send
        takes it anew, and looks at the queue's end first.
        """
        if not self.age.may_send(self._client.clock.monotonic()):
            return
        if await self._request() is False:
            self._lose()
            log.error("writer_lock_lost", group=self._group, queue=str(self._queue))

    async def release(self) -> None:
        """Release the lock. If that fails, it ends by itself."""
        self.age.lost()
        await self._locks.unlock([self._queue])

    def error(self) -> ExactAppendError:
        """Return the error of a lost lock."""
        return ExactAppendError(
            f"another writer has the lock of group {self._group!r} on {self._queue}: end one of the two"
        )

    async def _request(self) -> bool | None:
        """Return whether the lock is granted; None: no answer."""
        asked_at = self._client.clock.monotonic()
        granted = (await self._locks.lock([self._queue])).get(self._queue)
        if granted:
            self.age.renewed(asked_at)
        return granted

    def _lose(self) -> None:
        self.is_lost = True
        self.age.lost()
