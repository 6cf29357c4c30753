"""Servers for operators: the values of :meth:`rmqtools.Admin.check_cluster`, and what waits on brokers.

    for finding in admin.check_cluster().findings:
        print(finding.kind, finding.text)

The commands ``health`` and ``top``, and the exporter, show the same. :func:`check_broker` checks one state of
``Admin.fetch_brokers``.
"""

from rmqtools.model.broker_view import BrokerBacklog, BrokerState, GroupBacklog, NameServerState
from rmqtools.policy.broker_check import (
    ClusterCheck,
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
    "ClusterCheck",
    "GroupBacklog",
    "NameServerState",
    "awaited",
    "broker_note",
    "check_broker",
    "check_gone",
    "incoming",
    "left_behind",
]
