"""The transaction producer: its messages become visible only if a local transaction commits."""

import inspect
from collections.abc import Awaitable
from typing import Any, Protocol

from rmqtools.aio.producer import Producer
from rmqtools.config import ProducerConfig
from rmqtools.engine.producer.transaction import TransactionCore
from rmqtools.model.message import Message, MessageExt
from rmqtools.model.transaction import HalfMessage, LocalTransactionState, TransactionSendResult


class TransactionListener(Protocol):
    """The application's part of a transaction: coroutines, or plain functions that do not block."""

    def execute_local_transaction(
        self, message: HalfMessage, arg: Any
    ) -> LocalTransactionState | Awaitable[LocalTransactionState]:
        """Run the local transaction and return its state. The half message is already stored.

        Save ``message.transaction_id`` in the same transaction: a check-back names that id. An exception
        leaves the state unknown, and the broker asks later.
        """

    def check_local_transaction(
        self, message: MessageExt
    ) -> LocalTransactionState | Awaitable[LocalTransactionState]:
        """Return the state of the transaction ``message.msg_id``, started by any member of the group.

        Return ROLLBACK_MESSAGE if none was ever started. After an exception or UNKNOWN the broker asks again;
        after 15 times (``transactionCheckMax``) it discards the message.
        """


class TransactionProducer(Producer):
    """A :class:`Producer` that also sends in transactions and answers check-backs of its group.

    Brokers ask any connected member of the group, so the listener of every member must know the state of
    the transactions of all members.

    Raises:
        ConfigError: by the constructor, for settings that are not valid and for the default group.
    """

    def __init__(self, config: ProducerConfig, listener: TransactionListener) -> None:
        self._listener = listener
        self._core = self.core = TransactionCore(config, self._check)

    async def send_message_in_transaction(
        self, message: Message, arg: Any = None, *, timeout: float | None = None
    ) -> TransactionSendResult:
        """Send a half message, run the local transaction, send its decision to the broker.

        Args:
            message: delivered if the local transaction commits; must not have a delay.
            arg: passed to the listener.
            timeout: seconds for all attempts to store the half message; None: ``send_timeout``. The local
                transaction has no limit; the broker then has ``send_timeout`` to confirm the decision.

        Returns:
            The decision, and whether the broker accepted it. If the half message was not flushed or
            replicated as the broker requires, it is rolled back and the local transaction does not run.

        Raises:
            MessageRejectedError, TopicNotFoundError, PermissionDeniedError: nothing was sent.
            UnknownOutcomeError: the half message may be stored. The local transaction did not run; the broker
                may ask the group about it.
            SendError: the half message is not stored; the local transaction did not run.

        Source of the rule: TransactionMQProducer.sendMessageInTransaction (Java client).
        """
        return await self.core.send_message_in_transaction(
            message, arg, execute=self._execute, timeout=timeout
        )

    async def _execute(self, message: HalfMessage, arg: Any) -> LocalTransactionState:
        return await _settle(self._listener.execute_local_transaction(message, arg))

    async def _check(self, message: MessageExt) -> LocalTransactionState:
        return await _settle(self._listener.check_local_transaction(message))


async def _settle(answer: LocalTransactionState | Awaitable[LocalTransactionState]) -> LocalTransactionState:
    if inspect.isawaitable(answer):
        return await answer
    return answer
