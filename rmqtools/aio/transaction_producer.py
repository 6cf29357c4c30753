"""Sending messages that become visible only if a local transaction commits."""

import inspect
from collections.abc import Awaitable
from typing import Any, Protocol

from rmqtools.aio.producer import Producer
from rmqtools.config import ProducerConfig
from rmqtools.engine.transaction import TransactionCore
from rmqtools.model.message import Message, MessageExt
from rmqtools.model.transaction import HalfMessage, LocalTransactionState, TransactionSendResult


class TransactionListener(Protocol):
    """What the application brings to a transaction. Coroutines, or plain functions that do not block."""

    def execute_local_transaction(
        self, message: HalfMessage, arg: Any
    ) -> LocalTransactionState | Awaitable[LocalTransactionState]:
        """Do the local transaction, now that the half message is stored; say what came of it.

        Store ``message.transaction_id`` with it: a check-back asks for that id. Raising leaves the state
        unknown, so that the broker asks later.
        """

    def check_local_transaction(
        self, message: MessageExt
    ) -> LocalTransactionState | Awaitable[LocalTransactionState]:
        """Say what became of the transaction of the id ``message.msg_id``, begun by any member of the group.

        It may never have been begun: then ROLLBACK_MESSAGE. Raising, or UNKNOWN, makes the broker ask again;
        after 15 times (``transactionCheckMax``) it gives the message up.
        """


class TransactionProducer(Producer):
    """A :class:`Producer` that also sends in transactions, and answers its group's check-backs.

    Brokers ask any member of the group that is connected, so every member needs a listener that can tell
    what became of the transactions of all of them.

    Raises:
        ConfigError: by the constructor, for settings that cannot be used, and for the default group.
    """

    def __init__(self, config: ProducerConfig, listener: TransactionListener) -> None:
        self._listener = listener
        self._core = self.core = TransactionCore(config, self._check)

    async def send_message_in_transaction(
        self, message: Message, arg: Any = None, *, timeout: float | None = None
    ) -> TransactionSendResult:
        """Send a half message, run the local transaction, tell the broker its decision.

        Args:
            message: what consumers get if the local transaction commits; without a delay.
            arg: for the listener.
            timeout: seconds for all attempts to store the half message together; None: ``send_timeout``. The
                local transaction takes as long as it takes; the broker then has ``send_timeout`` to confirm.

        Returns:
            The decision, and whether the broker has taken it. A half message that was not flushed or
            replicated as the broker is set to is rolled back, without a local transaction.

        Raises:
            MessageRejectedError, TopicNotFoundError, PermissionDeniedError: nothing was sent.
            UnknownOutcomeError: the half message may be stored. The local transaction was not run; the broker
                may ask the group about it.
            SendError: it is not stored, and the local transaction was not run.

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
