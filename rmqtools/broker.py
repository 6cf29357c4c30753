"""Brokers for operators: their state, what waits on them, and checks on them.

    for broker in states:
        for finding in check_broker(broker):
            print(finding.kind, finding.text)

The states come from ``Admin.fetch_brokers``. The commands ``rmqtools broker`` and ``rmqtools health`` print
the same.
"""

from rmqtools.model.broker_view import BrokerBacklog, BrokerState, GroupBacklog
from rmqtools.policy.broker_check import (
    awaited,
    broker_note,
    check_broker,
    check_gone,
    incoming,
    left_behind,
)

__all__ = [
    "BrokerBacklog",
    "BrokerState",
    "GroupBacklog",
    "awaited",
    "broker_note",
    "check_broker",
    "check_gone",
    "incoming",
    "left_behind",
]
