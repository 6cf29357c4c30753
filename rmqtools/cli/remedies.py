"""The command that helps with a finding."""

from shlex import quote

from rmqtools.group import Finding, FindingKind

_MEMBER = (
    FindingKind.LISTENER_SLOW,
    FindingKind.QUEUE_BLOCKED,
    FindingKind.QUEUE_NOT_FETCHED,
    FindingKind.MEMBER_FAILS,
)
_PINS = (FindingKind.PINS_DIFFER, FindingKind.PINNED_IP_ABSENT)
_NAME_SERVERS = (FindingKind.NAME_SERVER_SILENT, FindingKind.NAME_SERVER_INCOMPLETE)
_DISK = (FindingKind.DISK_FULL, FindingKind.DISK_NEARLY_FULL)


def remedy(finding: Finding, group: str = "") -> str:
    """Return the command line to type next; ``group``: the group that has the problem, if one has."""
    if not group:
        return _broker_remedy(finding)
    if finding.kind in _MEMBER and finding.subject:
        return f"rmqtools group show {quote(group)} --member {quote(finding.subject)} --stack"
    if finding.kind == FindingKind.DEAD_LETTERS:
        return f"rmqtools dlq list -g {quote(group)}"
    if finding.kind == FindingKind.PIN_COPIES_DIFFER:
        return f"rmqtools group check {quote(group)} --repair"
    if finding.kind in _PINS:
        return f"rmqtools pin show -g {quote(group)}"
    if finding.kind == FindingKind.BROKER_SILENT:
        return "rmqtools broker status"
    return f"rmqtools group show {quote(group)}"


def _broker_remedy(finding: Finding) -> str:
    if finding.kind == FindingKind.BROKER_READ_ONLY:
        return f"rmqtools broker undrain {quote(finding.subject)}"
    if finding.kind in _NAME_SERVERS:
        return f"rmqtools health -n {quote(finding.subject)}"
    if finding.kind in _DISK:
        return f"rmqtools broker config {quote(finding.subject)} --match reserved"
    return "rmqtools broker status"
