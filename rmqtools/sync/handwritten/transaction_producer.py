"""The base class of the blocking transaction producer: the threads on which its listener runs."""

from collections.abc import Awaitable
from typing import Any, Protocol

from rmqtools import aio
from rmqtools.config import ProducerConfig
from rmqtools.config.client import check_config
from rmqtools.engine.user_functions import check_transaction_listener
from rmqtools.model.message import Message, MessageExt
from rmqtools.model.transaction import HalfMessage, LocalTransactionState, TransactionSendResult
from rmqtools.sync.caller_thread import CallerThread
from rmqtools.sync.listener_threads import ListenerThreads
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
