"""Checks of servers: silent, unable to store, losing messages early; and what a drain waits for. Pure.

Source of the limits (broker 5.5.0): CleanCommitLogService (DISK_SPACE_CLEAN_FORCIBLY_RATIO,
DISK_SPACE_WARNING_LEVEL_RATIO), osPageCacheBusyTimeOutMills, waitTimeMillsInSendQueue.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rmqtools.model.broker_view import BrokerBacklog, BrokerState, NameServerState
from rmqtools.model.group_view import Finding, FindingKind
from rmqtools.number_of import number_of
from rmqtools.policy.clocks import clock_findings
from rmqtools.policy.severity import worst_first

_FULL = 0.9  # of the disk: brokers refuse messages
_NEARLY_FULL = 0.85  # they delete the oldest messages, even those that have not expired
_PAGE_CACHE_MS = 1000  # a write holds the commit log for so long: brokers refuse messages
_SEND_QUEUE_MS = 200  # the oldest request has waited for so long: brokers refuse it


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterCheck:
    """The servers of a cluster at one moment with their problems.

    Attributes:
        brokers: each master and each slave, by broker name and broker id.
        name_servers: those of the settings, in their order.
        findings: their problems, the worst first; empty if all is well.
    """

    brokers: tuple[BrokerState, ...] = ()
    name_servers: tuple[NameServerState, ...] = ()
    findings: tuple[Finding, ...] = ()


def check_cluster(brokers: Sequence[BrokerState], name_servers: Sequence[NameServerState]) -> ClusterCheck:
    """Look for problems of servers."""
    clocks = {one.broker_name: one.clock for one in brokers if one.clock is not None}
    found = [finding for broker in brokers for finding in check_broker(broker)]
    found += [*_name_servers(name_servers), *clock_findings(clocks)]
    return ClusterCheck(
        brokers=tuple(brokers), name_servers=tuple(name_servers), findings=tuple(worst_first(found))
    )


def _name_servers(name_servers: Sequence[NameServerState]) -> Iterator[Finding]:
    every = {name for server in name_servers for name in server.brokers}
    for server in name_servers:
        lacks = ", ".join(sorted(every - server.brokers))
        if server.error is not None:
            text = f"name server {server.addr} does not answer: {server.error}"
            yield Finding(FindingKind.NAME_SERVER_SILENT, text, server.addr)
        elif lacks:
            text = f"name server {server.addr} does not know {lacks}, and another one does"
            remedy = "it was restarted a moment ago, or they do not register at it (namesrvAddr)"
            yield Finding(FindingKind.NAME_SERVER_INCOMPLETE, f"{text}: {remedy}", server.addr)


def check_broker(broker: BrokerState) -> list[Finding]:
    """Look for reasons why a broker cannot take or keep messages, the most important first."""
    name = f"{broker.broker_name} ({broker.role})"
    return [Finding(kind, f"{name}: {text}", broker.broker_name) for kind, text in _problems(broker)]


def broker_note(broker: BrokerState) -> str:
    """Return the same as one short text; empty if all is well."""
    return ", ".join(text for _, text in _problems(broker))


def check_gone(brokers: Sequence[BrokerState], seen: Mapping[str, str]) -> list[Finding]:
    """Look for brokers that the name server no longer has.

    Args:
        brokers: those that it has now.
        seen: the time, as text, at which each broker was last seen, by broker name.
    """
    known = {broker.broker_name for broker in brokers}
    return [
        Finding(FindingKind.BROKER_GONE, f"{name}: gone since {time}", name)
        for name, time in seen.items()
        if name not in known
    ]


def incoming(before: BrokerBacklog, after: BrokerBacklog) -> dict[str, int]:
    """Return how many messages each topic got between two moments; topics without new ones are left out."""
    grown = {topic: end - before.ends.get(topic, end) for topic, end in after.ends.items()}
    return {topic: count for topic, count in grown.items() if count > 0}


def awaited(backlog: BrokerBacklog) -> list[str]:
    """Return what must still end before a broker may be stopped: a text for each kind of it."""
    groups = [
        f"group {name}: {number_of(each.lag, 'message')} ({number_of(each.members, 'member')})"
        for name, each in sorted(backlog.groups.items())
        if each.members
    ]
    counts = (
        (backlog.delayed, "delayed message"),
        (backlog.timed, "timer message"),
        (backlog.half, "half message"),
        (backlog.popped, "popped message"),
    )
    return [*groups, *(number_of(count, name) for count, name in counts if count)]


def left_behind(backlog: BrokerBacklog) -> list[str]:
    """Return what no waiting ends: the backlog of groups that have no members now."""
    return [
        f"group {name}: {number_of(each.lag, 'message')}, offline"
        for name, each in sorted(backlog.groups.items())
        if not each.members
    ]


def _problems(broker: BrokerState) -> Iterator[tuple[FindingKind, str]]:
    if broker.is_alone:
        yield FindingKind.MASTER_MISSING, "has no master: the broker takes no messages"
    if broker.error is not None:
        yield FindingKind.BROKER_SILENT, broker.error
        return
    # a slave says true only while it acts for its master (BrokerController.isSpecialServiceRunning)
    if not broker.broker_id and broker.statistics.get("brokerActive", "true") != "true":
        yield FindingKind.BROKER_INACTIVE, "not active"
    disk = broker.disk
    if disk is not None and disk >= _FULL:
        yield FindingKind.DISK_FULL, f"disk {disk:.0%} full"
    elif disk is not None and disk >= _NEARLY_FULL:
        yield (
            FindingKind.DISK_NEARLY_FULL,
            f"disk {disk:.0%} full: old messages are deleted before their time",
        )
    if (wait := broker.number("pageCacheLockTimeMills") or 0) >= _PAGE_CACHE_MS:
        yield FindingKind.PAGE_CACHE_BUSY, f"page cache busy for {wait} ms"
    if (wait := broker.number("sendThreadPoolQueueHeadWaitTimeMills") or 0) >= _SEND_QUEUE_MS:
        yield FindingKind.SENDS_WAIT, f"sends wait for {wait} ms"
    if broker.is_read_only and not broker.broker_id:
        yield FindingKind.BROKER_READ_ONLY, "read-only"
