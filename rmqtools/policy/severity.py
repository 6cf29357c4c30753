"""The severities and the order of findings: what loses or stops messages comes first. Pure."""

from collections.abc import Iterable

from rmqtools.model.group_view import Finding, FindingKind, Severity

_KINDS = {
    Severity.CRITICAL: (
        FindingKind.DISK_FULL,
        FindingKind.DISK_NEARLY_FULL,
        FindingKind.BROKER_GONE,
        FindingKind.MASTER_MISSING,
        FindingKind.BROKER_SILENT,
        FindingKind.PAGE_CACHE_BUSY,
        FindingKind.SENDS_WAIT,
        FindingKind.BROKER_INACTIVE,
        FindingKind.OFFSET_BEYOND_END,
    ),
    Severity.ERROR: (
        FindingKind.SUBSCRIPTIONS_DIFFER,
        FindingKind.SUBSCRIPTION_IGNORED,
        FindingKind.LISTENER_SLOW,
        FindingKind.QUEUE_BLOCKED,
        FindingKind.QUEUE_UNOWNED,
        FindingKind.QUEUES_UNREADABLE,
        FindingKind.RETRY_QUEUES_UNREADABLE,
        FindingKind.QUEUE_OWNED_TWICE,
        FindingKind.MEMBERS_PROXIED,
        FindingKind.CLIENT_ID_SHARED,
        FindingKind.MODELS_DIFFER,
        FindingKind.DEAD_LETTERS,
        FindingKind.QUEUE_NOT_FETCHED,
        FindingKind.TOPIC_MISSING,
        FindingKind.MESSAGES_OLD,
        FindingKind.LAG_LARGE,
    ),
    Severity.WARNING: (
        FindingKind.MEMBER_FAILS,
        FindingKind.NAME_SERVER_SILENT,
        FindingKind.NAME_SERVER_INCOMPLETE,
        FindingKind.NAME_SERVERS_DIFFER,
        FindingKind.CLOCK_DIFFERS,
        FindingKind.STRATEGIES_DIFFER,
        FindingKind.MODES_DIFFER,
        FindingKind.BROKER_READ_ONLY,
        FindingKind.PIN_COPIES_DIFFER,
        FindingKind.PINS_DIFFER,
        FindingKind.PINNED_IP_ABSENT,
        FindingKind.MEMBER_SILENT,
        FindingKind.NO_MEMBERS,
        FindingKind.MEMBER_LISTED_AGAIN,
        FindingKind.MEMBER_IDLE,
        FindingKind.VERSIONS_DIFFER,
    ),
}
WORST_FIRST = tuple(kind for kinds in _KINDS.values() for kind in kinds)
"""Every kind, the worst first."""

_SEVERITIES = {kind: each for each, kinds in _KINDS.items() for kind in kinds}

_RANKS = {kind: rank for rank, kind in enumerate(WORST_FIRST)}


def severity_of(kind: FindingKind) -> Severity:
    """Return the severity of a kind of finding."""
    return _SEVERITIES[kind]


def severity(finding: Finding) -> int:
    """Return the rank of a finding, for sorting: 0 is the worst."""
    return _RANKS[finding.kind]


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings by severity; equal ones keep their order."""
    return sorted(findings, key=severity)
