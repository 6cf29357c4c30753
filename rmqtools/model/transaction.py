"""Transactions: the state of a local transaction, and its half message.

A half message is stored where consumers cannot see it. The local transaction decides: after a commit the
message becomes visible; after a rollback never; if unknown, its broker asks the producer group later.
Source of the rule: LocalTransactionState, TransactionSendResult (Java client).
"""

from dataclasses import dataclass
from enum import Enum

from rmqtools.model.message import Message
from rmqtools.model.result import SendResult


class LocalTransactionState(Enum):
    """The decision of a local transaction; the values are the Java client's names."""

    COMMIT_MESSAGE = "COMMIT_MESSAGE"
    ROLLBACK_MESSAGE = "ROLLBACK_MESSAGE"
    UNKNOWN = "UNKNOW"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class HalfMessage(Message):
    """The message of a local transaction.

    A later check-back names ``transaction_id`` as ``MessageExt.msg_id``. Save it with the changes of the
    local transaction, so that the check can find them.
    """

    transaction_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSendResult(SendResult):
    """A stored half message and its decision. ``queue_offset`` is the half message's.

    Attributes:
        local_transaction_state: the decision.
        local_transaction_error: the exception of the local transaction; the state is then UNKNOWN.
        end_transaction_error: why the broker may not have got the decision; it will ask again. So it is
            with every decision through a proxy, which takes them only when the broker asks. None: it
            has confirmed it, or the state is UNKNOWN, which brokers never confirm.
    """

    local_transaction_state: LocalTransactionState
    local_transaction_error: str | None = None
    end_transaction_error: str | None = None
