"""A scripted listener of transactions."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rmqtools import HalfMessage, LocalTransactionState, MessageExt

COMMIT = LocalTransactionState.COMMIT_MESSAGE
ROLLBACK = LocalTransactionState.ROLLBACK_MESSAGE
UNKNOWN = LocalTransactionState.UNKNOWN

Check = Callable[[MessageExt], LocalTransactionState]


def says(state: LocalTransactionState) -> Check:
    return lambda message: state


@dataclass
class Listener:
    """``decide`` is the local transaction; each check takes the next of ``checks``, the last one for ever."""

    decide: Callable[[HalfMessage, Any], LocalTransactionState] = lambda message, arg: UNKNOWN
    checks: list[Check] = field(default_factory=lambda: [says(UNKNOWN)])
    executed: list[tuple[HalfMessage, Any, str]] = field(default_factory=list)
    checked: list[tuple[MessageExt, str]] = field(default_factory=list)

    def execute_local_transaction(self, message: HalfMessage, arg: Any) -> LocalTransactionState:
        self.executed.append((message, arg, threading.current_thread().name))
        return self.decide(message, arg)

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        self.checked.append((message, threading.current_thread().name))
        check = self.checks.pop(0) if len(self.checks) > 1 else self.checks[0]
        return check(message)
