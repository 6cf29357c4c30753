"""The blocking TransactionProducer, written by ``python -m tools.blocking_classes``.

Change the class of :mod:`rmqtools.aio` instead, and run the program again. One file because it is one class.
"""

from typing import Any

from rmqtools.model.message import Message
from rmqtools.model.transaction import TransactionSendResult
from rmqtools.sync.handwritten.transaction_producer import BlockingTransactionProducer


class TransactionProducer(BlockingTransactionProducer):
    """A :class:`Producer` that also sends in transactions and answers check-backs of its group.

    Brokers ask any connected member of the group, so the listener of every member must know the state of
    the transactions of all members.

    Safe to share between threads.

    Raises:
        ConfigError: by the constructor, for settings that are not valid and for the default group.
        TypeError: by the constructor, for a listener without one of the methods.
    """

    __module__ = "rmqtools"

    def start(self) -> None:
        """Start the background tasks, among them the search for the brokers that hold half messages.

        An interrupted start (Ctrl-C) closes it.
        """
        super().start()

    def send_message_in_transaction(
        self, message: Message, arg: Any = None, *, timeout: float | None = None
    ) -> TransactionSendResult:
        """Send a half message, run the local transaction, and send its decision to the broker.

        The local transaction runs on the calling thread.

        Args:
            message: delivered if the local transaction commits; must not have a delay.
            arg: passed to the listener.
            timeout: seconds for all attempts to store the half message; None: ``send_timeout``. The local
                transaction has no limit; the broker then has ``send_timeout`` to confirm the decision.

        Returns:
            The decision, and whether the broker accepted it. If the half message was not flushed or
            replicated as the broker requires, it is rolled back and the local transaction does not run.

        Raises:
            MessageRejectedError, TopicNotFoundError, PermissionDeniedError, RemotingConnectError: nothing was
                sent.
            UnknownOutcomeError: the half message may be stored. The local transaction did not run; the broker
                may ask the group about it.
            SendError: the half message is not stored; the local transaction did not run.

        Source of the rule: TransactionMQProducer.sendMessageInTransaction (Java client).
        """
        return super().send_message_in_transaction(message, arg, timeout=timeout)
