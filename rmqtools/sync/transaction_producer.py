"""Blocking face of :mod:`rmqtools.aio.transaction_producer`."""

from collections.abc import Awaitable
from typing import Any, Protocol

from rmqtools import aio
from rmqtools.config import ProducerConfig
from rmqtools.model.message import Message, MessageExt
from rmqtools.model.transaction import HalfMessage, LocalTransactionState, TransactionSendResult
from rmqtools.sync.caller_thread import CallerThread
from rmqtools.sync.listener_threads import ListenerThreads
from rmqtools.sync.producer import Producer


class TransactionListener(Protocol):
    """The application's part of a transaction. Both methods may block; checks run on separate threads."""

    def execute_local_transaction(self, message: HalfMessage, arg: Any) -> LocalTransactionState:
        """See :meth:`rmqtools.aio.TransactionListener.execute_local_transaction`; on the sending thread."""

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """See :meth:`rmqtools.aio.TransactionListener.check_local_transaction`; on a checking thread."""


class TransactionProducer(Producer):
    """Blocking face of :class:`rmqtools.aio.TransactionProducer`; safe to share between threads."""

    def __init__(self, config: ProducerConfig, listener: TransactionListener) -> None:
        self._listener = listener
        self._checkers = ListenerThreads(config.check_thread_pool_max_size, "rmqtools-transaction-check")
        self._transactions = aio.TransactionProducer(config, _OffTheLoop(listener, self._checkers))
        self._serve(self._transactions)

    def send_message_in_transaction(
        self, message: Message, arg: Any = None, *, timeout: float | None = None
    ) -> TransactionSendResult:
        """See :meth:`rmqtools.aio.TransactionProducer.send_message_in_transaction`.

        The local transaction runs on the calling thread.
        """
        caller = CallerThread()

        def execute(half: HalfMessage, given: Any) -> Awaitable[LocalTransactionState]:
            return caller.call(self._listener.execute_local_transaction, half, given)

        sending = self._transactions.core.send_message_in_transaction(
            message, arg, execute=execute, timeout=timeout
        )
        return caller.wait(self._bridge.submit(sending))

    def close(self) -> None:
        """See :meth:`rmqtools.aio.Producer.close`. Waits some seconds for running checks."""
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
