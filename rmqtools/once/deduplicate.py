"""Wraps a listener so that it gets every message once, by the keys that a store remembers.

``deduplicate`` answers with ``ack_index`` for concurrent listeners and with a suspended queue for orderly
ones: an orderly consumer ignores ``ack_index``, and would acknowledge a message that another member is still
consuming.
"""

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, overload

from rmqtools.model.consume import ConsumeConcurrentlyStatus, ConsumeContext, ConsumeOrderlyStatus
from rmqtools.model.message import MessageExt
from rmqtools.once.key_store import Claim, KeyStore
from rmqtools.once.message_key import KeyFunction, message_key

Answer = ConsumeConcurrentlyStatus | ConsumeOrderlyStatus | None

DEFAULT_WINDOW: Final = 72 * 3600.0
"""Seconds; as long as brokers keep messages by default (fileReservedTime), so a group that is reset to the
first offset gets nothing twice."""
_SUCCESSES: Final = (None, ConsumeConcurrentlyStatus.CONSUME_SUCCESS, ConsumeOrderlyStatus.SUCCESS)


_MOST_CALLS: Final = 10_000
"""Listener calls of one wrapper at the same time: far more than any consumer makes."""


class _Deduplication:
    """The common part of both wrappers."""

    def __init__(self, store: KeyStore, *, window: float, key: KeyFunction | None) -> None:
        self._store = store
        self._window = window
        self._key = key
        self._lock = threading.Lock()
        self._dropped = 0

    @property
    def dropped(self) -> int:
        """Messages that were not given to the listener, because they had been consumed before."""
        return self._dropped

    def _consume(
        self, messages: list[MessageExt], context: ConsumeContext, listener: Callable[..., Answer]
    ) -> Answer:
        """Call the listener with the messages that are new, and return one status for all."""
        keys = [message_key(message, self._key) for message in messages]
        with self._store.claim(sorted(set(keys)), self._window) as claim:
            answer = _listen(messages, keys, claim, context, listener)
        done = {*keys} - claim.new - claim.busy | claim.done
        with self._lock:
            self._dropped += sum(key in done for key in keys) - len(claim.done)
        if answer not in _SUCCESSES:
            return answer
        return _answer_of(keys, done, context)


class Deduplicated(_Deduplication):
    """A listener for :meth:`rmqtools.PushConsumer.subscribe`; made by :func:`deduplicate`."""

    def __init__(
        self, store: KeyStore, listener: Callable[..., Answer], *, window: float, key: KeyFunction | None
    ) -> None:
        super().__init__(store, window=window, key=key)
        self._listener = listener

    def __call__(self, messages: list[MessageExt], context: ConsumeContext) -> Answer:
        """Call the listener with the messages that are new, and return one status for all."""
        return self._consume(messages, context, self._listener)


class DeduplicatedCoroutine(_Deduplication):
    """A listener for :meth:`rmqtools.aio.PushConsumer.subscribe`; made by :func:`deduplicate`.

    Stores block. So each call has a thread, which holds the claim while the coroutine runs on the loop: a
    claim may wait until another call ends, so calls must not wait for a free thread.
    """

    def __init__(
        self,
        store: KeyStore,
        listener: Callable[..., Coroutine[Any, Any, Answer]],
        *,
        window: float,
        key: KeyFunction | None,
    ) -> None:
        super().__init__(store, window=window, key=key)
        self._listener = listener
        self._threads = ThreadPoolExecutor(_MOST_CALLS, "rmqtools-once")  # makes threads as they are needed

    async def __call__(self, messages: list[MessageExt], context: ConsumeContext) -> Answer:
        """Call the listener with the messages that are new, and return one status for all.

        If the call is cancelled, the listener is too, and its messages do not count as consumed. They stay
        claimed until it has ended.
        """
        loop = asyncio.get_running_loop()
        tasks: list[asyncio.Task[Any]] = []
        is_cancelled = False

        async def call(*arguments: Any) -> Answer:
            task = asyncio.current_task()
            assert task is not None
            tasks.append(task)
            if is_cancelled:  # before this task began
                raise asyncio.CancelledError
            return await self._listener(*arguments)

        def listen(*arguments: object) -> Answer:
            """Run the coroutine on the loop, and wait on this thread until it has ended."""
            return asyncio.run_coroutine_threadsafe(call(*arguments), loop).result()

        consume = contextvars.copy_context().run
        work = loop.run_in_executor(self._threads, consume, self._consume, messages, context, listen)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            is_cancelled = True
            for task in tasks:
                task.cancel()
            await asyncio.wait({work})
            if not work.cancelled():
                work.exception()
            raise


def _listen(
    messages: list[MessageExt],
    keys: list[str],
    claim: Claim,
    context: ConsumeContext,
    listener: Callable[..., Answer],
) -> Answer:
    """Call the listener with the first message of each new key; note the keys that it has consumed."""
    fresh = [place for place, key in enumerate(keys) if key in claim.new and keys.index(key) == place]
    if not fresh:
        return None
    answer = listener([messages[place] for place in fresh], context, *claim.arguments)
    if not context.auto_commit or answer in (ConsumeOrderlyStatus.COMMIT, ConsumeOrderlyStatus.ROLLBACK):
        raise ValueError(
            "a deduplicated listener cannot use auto_commit=False, COMMIT or ROLLBACK: a message that is "
            "rolled back would be dropped as consumed; return SUCCESS or SUSPEND_CURRENT_QUEUE_A_MOMENT"
        )
    if answer in _SUCCESSES:
        consumed = fresh if context.is_orderly else fresh[: max(0, context.ack_index + 1)]
        claim.done |= {keys[place] for place in consumed}
    return answer


def _answer_of(keys: Sequence[str], done: set[str], context: ConsumeContext) -> Answer:
    """Return the answer for the whole batch: messages from the first open one on are delivered again."""
    still_open = next((place for place, key in enumerate(keys) if key not in done), None)
    if still_open is None:
        context.ack_index = len(keys) - 1
        return None
    context.ack_index = still_open - 1
    return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT if context.is_orderly else None


@overload
def deduplicate(
    store: KeyStore,
    listener: Callable[..., Answer],
    *,
    window: float = DEFAULT_WINDOW,
    key: KeyFunction | None = None,
) -> Deduplicated: ...


@overload
def deduplicate(
    store: KeyStore,
    listener: Callable[..., Coroutine[Any, Any, Answer]],
    *,
    window: float = DEFAULT_WINDOW,
    key: KeyFunction | None = None,
) -> DeduplicatedCoroutine: ...


def deduplicate(
    store: KeyStore,
    listener: Callable[..., Any],
    *,
    window: float = DEFAULT_WINDOW,
    key: KeyFunction | None = None,
) -> Deduplicated | DeduplicatedCoroutine:
    """Wrap a listener so that copies of consumed messages do not reach it.

    Messages that another member is consuming at this moment, or that follow one in the batch, are delivered
    again later. They count as attempts (``max_reconsume_times``).

    Args:
        store: where keys are remembered: SqlStore, RedisStore or MemoryStore.
        listener: called as ``listener(messages, context)``, with SqlStore as ``listener(messages, context,
            connection)``, for the messages of a batch that are new. A plain function for
            :class:`rmqtools.PushConsumer`, a coroutine function for :class:`rmqtools.aio.PushConsumer`. The
            connection of SqlStore blocks, in a coroutine too.
        window: seconds a key is remembered at least. A copy that arrives later is consumed again.
        key: returns what makes a message unique, such as an order number; None for messages without one.
            See :func:`rmqtools.once.message_key` for the default.

    Raises:
        TypeError: ``listener`` cannot be called.
        ValueError: ``window`` is not positive.
    """
    if not callable(listener):
        raise TypeError(
            f"deduplicate() got the listener {listener!r}: want a function listener(messages, context)"
        )
    if not window > 0:
        raise ValueError(f"window={window!r}: want a number of seconds above 0")
    if inspect.iscoroutinefunction(listener) or inspect.iscoroutinefunction(type(listener).__call__):
        return DeduplicatedCoroutine(store, listener, window=window, key=key)
    return Deduplicated(store, listener, window=window, key=key)
