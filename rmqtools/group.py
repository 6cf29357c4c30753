"""Consumer groups for operators: the values of :meth:`rmqtools.Admin.check_group`.

    for finding in admin.check_group("orders").findings:
        print(finding.kind, finding.text)

The commands ``group`` and ``top``, and the exporter, show the same. :func:`check_group` checks a view
that a program has kept. :func:`member_of` and :func:`silent_member` make members of single answers
(``Admin.fetch_consumer_connection``, ``Admin.fetch_running_info``).
"""

from rmqtools.model.group import MessageRequestMode
from rmqtools.model.group_config import (
    CustomizedRetryPolicy,
    ExponentialRetryPolicy,
    GroupRetryPolicy,
    GroupSettings,
    SubscriptionGroupConfig,
)
from rmqtools.model.group_view import (
    DeadLetters,
    Finding,
    FindingKind,
    GroupLimits,
    GroupMember,
    GroupView,
    ProxiedMember,
    QueueProgress,
    Severity,
    UnreadableQueues,
    WaitingQueue,
)
from rmqtools.policy.group_check import GroupCheck, check_group, check_pin_copies, pin_obstacles
from rmqtools.policy.group_member import member_of, silent_member
from rmqtools.policy.severity import severity, severity_of, worst_first

__all__ = [
    "CustomizedRetryPolicy",
    "DeadLetters",
    "ExponentialRetryPolicy",
    "Finding",
    "FindingKind",
    "GroupCheck",
    "GroupLimits",
    "GroupMember",
    "GroupRetryPolicy",
    "GroupSettings",
    "GroupView",
    "MessageRequestMode",
    "ProxiedMember",
    "QueueProgress",
    "Severity",
    "SubscriptionGroupConfig",
    "UnreadableQueues",
    "WaitingQueue",
    "check_group",
    "check_pin_copies",
    "member_of",
    "pin_obstacles",
    "severity",
    "severity_of",
    "silent_member",
    "worst_first",
]
