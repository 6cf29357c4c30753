"""The base class of the blocking transaction producer: the threads on which its listener runs.

A local transaction runs on the thread that waits in the call, as in Java: database sessions are often bound
to a thread.
"""

import asyncio
import queue
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeVar

from rmqtools import aio
from rmqtools.config import ProducerConfig
from rmqtools.config.client import check_config
from rmqtools.engine.user_functions import check_transaction_listener
from rmqtools.model.message import Message, MessageExt
from rmqtools.model.transaction import HalfMessage, LocalTransactionState, TransactionSendResult
from rmqtools.sync.listener_threads import ListenerThreads, as_error
from rmqtools.sync.loop import Call
from rmqtools.sync.producer import Producer


class TransactionListener(Protocol):
    """The application's part of a transaction. Both methods may block; checks run on separate threads."""

    def execute_local_transaction(self, message: HalfMessage, arg: Any) -> LocalTransactionState:
        """Run the local transaction and return its state. The half message is already stored.

        Runs on the sending thread. Save ``message.transaction_id`` in the same transaction: a check-back
        names that id. An exception leaves the state unknown, and the broker asks later.
        """

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Return the state of the transaction ``message.msg_id``, started by any member of the group.

        Runs on a checking thread. Return ROLLBACK_MESSAGE if none was ever started. After an exception or
        UNKNOWN the broker asks again; after 15 times (``transactionCheckMax``) it discards the message.
        """


TransactionListener.__module__ = "rmqtools"


T = TypeVar("T")

_Job = tuple[Callable[..., Any], tuple[Any, ...], "asyncio.Future[Any]"]


class CallerThread(Call[T]):
    """One blocking call: the loop passes callbacks on, and the calling thread runs them while it waits."""

    def __init__(self, make: Callable[[], Coroutine[Any, Any, T]], loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(make, loop)
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()

    def call(self, function: Callable[..., Any], *arguments: object) -> Awaitable[Any]:
        """On the loop: let the waiting thread run ``function``; its result can be awaited."""
        done: asyncio.Future[Any] = self._loop.create_future()
        self._jobs.put((function, arguments, done))
        return done

    def _wait(self) -> None:
        """Run the callbacks passed on until the call has ended."""
        while (job := self._jobs.get()) is not None:
            self._run_job(*job)

    def _end(self) -> None:
        self._jobs.put(None)

    def _run_job(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], done: "asyncio.Future[Any]"
    ) -> None:
        try:
            result, error = function(*arguments), None
        except Exception as raised:  # noqa: BLE001 - a user's callback; its awaiter gets the error
            result, error = None, as_error(raised)
        self._loop.call_soon_threadsafe(_complete, done, result, error)


def _complete(done: "asyncio.Future[Any]", result: Any, error: Exception | None) -> None:
    if done.done():  # the call was cancelled
        return
    if error is None:
        done.set_result(result)
    else:
        done.set_exception(error)


class BlockingTransactionProducer(Producer):
    """A blocking transaction producer without the methods of one line."""

    def __init__(self, config: ProducerConfig, listener: TransactionListener) -> None:
        check_config(type(self).__name__, config, ProducerConfig)
        check_transaction_listener(listener, awaited=False)
        self._listener = listener
        self._checkers = ListenerThreads(config.check_thread_pool_max_size, "rmqtools-transaction-check")
        self._transactions = aio.TransactionProducer(config, _OffTheLoop(listener, self._checkers))
        self._serve(self._transactions)

    def send_message_in_transaction(
        self, message: Message, arg: Any = None, *, timeout: float | None = None
    ) -> TransactionSendResult:
        """Send in a transaction, and run the local transaction on the calling thread."""

        def execute(half: HalfMessage, given: Any) -> Awaitable[LocalTransactionState]:
            return caller.call(self._listener.execute_local_transaction, half, given)

        caller = CallerThread(
            lambda: self._transactions._send_in_transaction(message, arg, execute, timeout), self._bridge.loop
        )
        return caller.run()

    def close(self) -> None:
        """Close the producer as :meth:`Producer.close`. Waits some seconds for running checks."""
        super().close()
        self._checkers.close()


class _OffTheLoop:
    """Makes a blocking listener asynchronous. Local transactions run on the sending thread."""

    def __init__(self, listener: TransactionListener, threads: ListenerThreads) -> None:
        self._listener = listener
        self._threads = threads

    def execute_local_transaction(self, message: HalfMessage, arg: Any) -> Awaitable[LocalTransactionState]:
        return self._threads.call(self._listener.execute_local_transaction, message, arg)

    def check_local_transaction(self, message: MessageExt) -> Awaitable[LocalTransactionState]:
        return self._threads.call(self._listener.check_local_transaction, message)
