"""Findings of ``group check`` and ``health``: which of them count, and how they are printed."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Annotated

import typer

from rmqtools.cli.printing import plain
from rmqtools.errors import ConfigError
from rmqtools.group import Finding, FindingKind, Severity, severity_of
from rmqtools.unknown_name import unknown_name

MinSeverity = Annotated[
    Severity,
    typer.Option(
        help="Leave out less severe findings. critical: messages are refused or lost; error: they are not "
        "consumed, or twice; warning: not yet, or by operators."
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KIND[:SUBJECT]",
        help="Leave out a kind of finding, e.g. member_idle, or broker_read_only:broker-a during a drain; "
        "a subject may have * in it. Several times.",
    ),
]


def counted(findings: Sequence[Finding], least: Severity, ignored: Sequence[str] | None) -> list[Finding]:
    """Return the findings that are severe enough, and not ignored.

    Raises:
        ConfigError: no such kind.
    """
    pairs, order = [_pair(text) for text in ignored or ()], list(Severity)
    return [
        one
        for one in findings
        if order.index(severity_of(one.kind)) <= order.index(least)
        and not any(kind == one.kind and fnmatchcase(one.subject, subject) for kind, subject in pairs)
    ]


def left_out(findings: Sequence[Finding], shown: Sequence[Finding]) -> str:
    """Return the end of a text that says that nothing is found."""
    count = len(findings) - len(shown)
    return f" ({count} left out)" if count else ""


def finding_values(finding: Finding) -> dict[str, object]:
    """Return a finding for JSON."""
    return {**plain(finding), "severity": severity_of(finding.kind).value}


def _pair(text: str) -> tuple[FindingKind, str]:
    kind, _, subject = text.partition(":")
    known = [each.value for each in FindingKind]
    if kind not in known:
        raise ConfigError(f"--ignore {text!r}: {unknown_name('kind of finding', kind, known)}")
    return FindingKind(kind), subject or "*"
