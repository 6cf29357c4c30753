"""Transactions: what a local transaction came to, and what is known of its half message.

A half message is stored where consumers do not see it. The local transaction decides: committed, the message
becomes visible; rolled back, it never does; unknown, its broker asks the producer group later.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class HalfMessage(Message):
    """The message that a local transaction is executed for.

    ``transaction_id`` is the id a later check-back has as ``MessageExt.msg_id``: store it with what the
    local transaction changes, and the checker can tell what became of it.
    """

    transaction_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSendResult(SendResult):
    """A half message that was stored, and the decision about it. ``queue_offset`` is the half message's.

    Attributes:
        local_transaction_state: the decision.
        local_transaction_error: what the local transaction raised; the state is then UNKNOWN.
        end_transaction_error: why the broker may not have taken the decision; it will ask for it. None: it
            has confirmed it, or the state is UNKNOWN, which brokers never confirm.
    """

    local_transaction_state: LocalTransactionState
    local_transaction_error: str | None = None
    end_transaction_error: str | None = None
