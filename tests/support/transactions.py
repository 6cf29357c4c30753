"""For tests of transactions: a cluster with early check-backs, a scripted listener."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rmqtools import (
    HalfMessage,
    LocalTransactionState,
    MessageExt,
    ProducerConfig,
)
from rmqtools.cluster import LocalCluster
from tests.support.resting import RestingCluster

COMMIT = LocalTransactionState.COMMIT_MESSAGE
ROLLBACK = LocalTransactionState.ROLLBACK_MESSAGE
UNKNOWN = LocalTransactionState.UNKNOWN

Check = Callable[[MessageExt], LocalTransactionState]


@contextmanager
def cluster_that_asks_soon(*, brokers: int = 1) -> Iterator[LocalCluster]:
    """Check-backs every second, of half messages that are half a second old, for more than a minute.

    With the default ``transactionCheckMax`` a broker gives up after 15 of them: too soon on a busy machine.
    """
    settings = {
        "transactionCheckInterval": "1000",
        "transactionTimeOut": "500",
        "transactionCheckMax": "100",
    }
    with RestingCluster(brokers=brokers, broker_settings=settings) as cluster:
        yield cluster


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


def config_of(cluster: LocalCluster, group: str) -> ProducerConfig:
    return ProducerConfig(name_server=cluster.name_server, group=group)
