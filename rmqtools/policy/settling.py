"""Findings that half of a rebalance makes, too: they count once they have lasted. Pure."""

from collections.abc import Iterable

from rmqtools.model.group_view import Finding, FindingKind

SETTLE_SECONDS = 5.0
"""Seconds that a finding must last. Members share queues anew within one, but not on busy machines."""

_OF_A_REBALANCE = frozenset(
    (
        *(FindingKind.QUEUE_UNOWNED, FindingKind.QUEUE_OWNED_TWICE, FindingKind.MEMBER_IDLE),
        FindingKind.MEMBER_SILENT,  # it has left since it was listed
    )
)

_Key = tuple[FindingKind, str, tuple[object, ...]]


class Settling:
    """Remembers since when each group has had such findings, from look to look."""

    def __init__(self) -> None:
        self._since: dict[str, dict[_Key, float]] = {}

    def lasting(
        self, group: str, findings: Iterable[Finding], *, now: float
    ) -> tuple[tuple[Finding, ...], float]:
        """Note the findings of a look; return those that count, and the seconds until all of them do.

        Args:
            group: its name.
            findings: what the look has found.
            now: seconds of a monotonic clock.
        """
        before, since, wait = self._since.pop(group, {}), dict[_Key, float](), 0.0
        counting = []
        for each in findings:
            if each.kind in _OF_A_REBALANCE:
                key = (each.kind, each.subject, each.queues)
                since[key] = before.get(key, now)
                if (rest := since[key] + SETTLE_SECONDS - now) > 0:
                    wait = max(wait, rest)
                    continue
            counting.append(each)
        if since:
            self._since[group] = since
        return tuple(counting), wait
