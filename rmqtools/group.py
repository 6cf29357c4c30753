"""Consumer groups for operators: the values of :meth:`rmqtools.Admin.fetch_group`, and checks on them.

    view = admin.fetch_group("orders")
    for finding in check_group(view, admin.fetch_pins("orders").at(datetime.now(UTC))):
        print(finding.kind, finding.text)

The command ``rmqtools group`` prints the same.
"""

from rmqtools.model.group import MessageRequestMode
from rmqtools.model.group_view import Finding, FindingKind, GroupMember, GroupView, QueueProgress
from rmqtools.policy.group_check import check_group, check_pin_copies, pin_obstacles

__all__ = [
    "Finding",
    "FindingKind",
    "GroupMember",
    "GroupView",
    "MessageRequestMode",
    "QueueProgress",
    "check_group",
    "check_pin_copies",
    "pin_obstacles",
]
