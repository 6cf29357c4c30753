"""The transaction producer of ``rocketmq.client``."""

from collections.abc import Callable
from typing import Any

import rmqtools
from rmqtools.compat.exceptions import ProducerSendSyncFailed, raised_as
from rmqtools.compat.message import Message, ReceivedMessage, Text, plain_message
from rmqtools.compat.producer import Producer, native_result
from rmqtools.compat.status import SendResult, TransactionStatus
from rmqtools.log import get_logger

CheckerCallback = Callable[[ReceivedMessage], object]
LocalExecute = Callable[[ReceivedMessage, Any], object]

log = get_logger(__name__)

_STATES = {
    TransactionStatus.COMMIT: rmqtools.LocalTransactionState.COMMIT_MESSAGE,
    TransactionStatus.ROLLBACK: rmqtools.LocalTransactionState.ROLLBACK_MESSAGE,
    TransactionStatus.UNKNOWN: rmqtools.LocalTransactionState.UNKNOWN,
}


class TransactionMQProducer(Producer):
    """Sends messages that become visible when their local transaction commits.

    Args:
        group_id: name of the producer group; brokers ask any member of it about open transactions.
        checker_callback: returns the state of a message's transaction. It runs on another thread; one that
            raises, or returns no TransactionStatus, leaves the state UNKNOWN, and the broker asks again.
        user_args: accepted and not used, as in the native client.
        timeout, compress_level, max_message_size: as :class:`Producer`.
    """

    def __init__(
        self,
        group_id: Text,
        checker_callback: CheckerCallback,
        user_args: Any = None,
        timeout: float | None = None,
        compress_level: int | None = None,
        max_message_size: int | None = None,
    ) -> None:
        super().__init__(group_id, False, timeout, compress_level, max_message_size)
        self._checker = checker_callback

    def send_message_in_transaction(
        self, message: Message, local_execute: LocalExecute, user_args: Any = None
    ) -> SendResult:
        """Send a half message, run the local transaction, send its outcome to the broker.

        Args:
            message: delivered if the local transaction commits.
            local_execute: the local transaction, called on this thread with the message and ``user_args``.
                One that raises, or returns no TransactionStatus, leaves the state UNKNOWN.
            user_args: any object.

        Raises:
            ProducerSendSyncFailed: the half message was not stored, or its outcome is unknown.
        """
        with raised_as(ProducerSendSyncFailed):
            producer = self._started
            assert isinstance(producer, rmqtools.TransactionProducer)
            result = producer.send_message_in_transaction(
                plain_message(message), (local_execute, user_args), timeout=self._timeout
            )
            return native_result(result)

    def _make(self, config: rmqtools.ProducerConfig) -> rmqtools.TransactionProducer:
        return rmqtools.TransactionProducer(config, _Callbacks(self._checker))


class _Callbacks:
    """The native callbacks as our listener."""

    def __init__(self, checker: CheckerCallback) -> None:
        self._checker = checker

    def execute_local_transaction(
        self, message: rmqtools.HalfMessage, arg: tuple[LocalExecute, Any]
    ) -> rmqtools.LocalTransactionState:
        local_execute, user_args = arg
        return _state(
            "local_execute",
            message.transaction_id,
            lambda: local_execute(ReceivedMessage(message), user_args),
        )

    def check_local_transaction(self, message: rmqtools.MessageExt) -> rmqtools.LocalTransactionState:
        return _state("checker_callback", message.msg_id, lambda: self._checker(ReceivedMessage(message)))


def _state(name: str, msg_id: str, callback: Callable[[], object]) -> rmqtools.LocalTransactionState:
    """Return what a callback decides; UNKNOWN, and the error logged, where it fails, also by SystemExit."""
    try:
        return _STATES[TransactionStatus(callback())]  # type: ignore[arg-type]
    except (Exception, SystemExit) as error:  # a user's callback: the broker asks again
        log.error(
            "transaction_callback_failed", callback=name, msg_id=msg_id, reason=repr(error), exc_info=error
        )
        return rmqtools.LocalTransactionState.UNKNOWN
