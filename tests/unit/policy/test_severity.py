"""The order of findings."""

from rmqtools.model.group_view import Finding, FindingKind, Severity
from rmqtools.policy.severity import WORST_FIRST, severity_of, worst_first


def test_every_kind_has_one_place():
    assert sorted(WORST_FIRST) == sorted(FindingKind)


def test_the_worst_comes_first_and_equal_ones_keep_their_order():
    kinds = (FindingKind.MEMBER_IDLE, FindingKind.DISK_FULL, FindingKind.LISTENER_SLOW)
    findings = [Finding(kind, text) for text in ("one", "two") for kind in kinds]

    assert [(one.kind, one.text) for one in worst_first(findings)] == [
        (FindingKind.DISK_FULL, "one"),
        (FindingKind.DISK_FULL, "two"),
        (FindingKind.LISTENER_SLOW, "one"),
        (FindingKind.LISTENER_SLOW, "two"),
        (FindingKind.MEMBER_IDLE, "one"),
        (FindingKind.MEMBER_IDLE, "two"),
    ]


def test_severities_follow_the_order_of_the_kinds():
    order = [list(Severity).index(severity_of(kind)) for kind in WORST_FIRST]

    assert order == sorted(order)
    assert severity_of(FindingKind.MEMBER_FAILS) == Severity.WARNING
    assert severity_of(FindingKind.DEAD_LETTERS) == Severity.ERROR
