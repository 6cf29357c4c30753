"""Checks of a consumer group by its members' own reports. Pure."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rmqtools.errors import RemotingError, RocketMQError
from rmqtools.model.group import ConsumeType, MessageModel
from rmqtools.model.group_view import (
    DEFAULT_LIMITS,
    Finding,
    FindingKind,
    GroupLimits,
    GroupMember,
    GroupView,
)
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX
from rmqtools.model.queue import MessageQueue
from rmqtools.number_of import number_of
from rmqtools.policy.allocate.addresses import members_within, parse_networks
from rmqtools.policy.allocate.by_pins import AllocateByPins
from rmqtools.policy.allocate.pins import NO_PINS, Pins, newest
from rmqtools.policy.member_check import failing_members, member_clocks, named, stuck_members
from rmqtools.policy.severity import worst_first

PINS = AllocateByPins.name
SETTLE_SECONDS = 5.0
"""Seconds that a finding which half of a rebalance makes, too, must last before it counts.

Members share queues anew within one, but not on busy machines.
"""

_OF_A_REBALANCE = frozenset(
    {
        FindingKind.QUEUE_UNOWNED,
        FindingKind.QUEUE_OWNED_TWICE,
        FindingKind.MEMBER_IDLE,
        FindingKind.MEMBER_SILENT,  # it has left since it was listed
    }
)

_Key = tuple[FindingKind, str, tuple[object, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCheck:
    """A group at one moment with its problems.

    Attributes:
        view: the group.
        pin_copies: each name server's copy of its pins by address, or the error if it cannot be read.
        findings: its problems, the worst first; empty if all is well.
    """

    view: GroupView
    pin_copies: Mapping[str, Pins | RocketMQError] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    @property
    def pins(self) -> Pins:
        """The newest copy of the pins; they may have expired, see :meth:`rmqtools.allocate.Pins.at`."""
        return newest(NO_PINS, *(copy for copy in self.pin_copies.values() if isinstance(copy, Pins)))

    @property
    def is_known(self) -> bool:
        """True if a server knows the group: members, offsets or pins; also if a broker does not answer."""
        view, copies = self.view, self.pin_copies.values()
        is_pinned = any(copy != NO_PINS and not isinstance(copy, RemotingError) for copy in copies)
        return is_pinned or bool(view.members or view.progress or view.proxied or view.silent_brokers)


def check_group(view: GroupView, pins: Pins = NO_PINS, limits: GroupLimits = DEFAULT_LIMITS) -> list[Finding]:
    """Look for problems in a view of a group; :meth:`rmqtools.Admin.check_group` makes the view, too.

    Args:
        view: the group. It may show half of a rebalance: check again before you act.
        pins: the pins that are valid now (``pins.at(now)``).
        limits: from when on a member counts as stuck.

    Returns:
        Findings, the worst first; empty if all is well.
    """
    return worst_first(_problems(view, pins, limits))


def _problems(view: GroupView, pins: Pins, limits: GroupLimits) -> list[Finding]:
    if not view.members:
        late = [*_silent_brokers(view), *_late(view, limits), *_dead_letters(view, limits)]
        return [*_no_members(view), *late, *_offsets(view), *_unreadable(view)]
    listed = [*_listed_again(view)]
    findings = [
        *_silent_brokers(view),
        *_late(view, limits),
        *_proxied(view),
        *listed,
        *stuck_members(view, limits),
        *failing_members(view),
        *_dead_letters(view, limits),
        *_offsets(view),
        *_unreadable(view),
        *_silent(view),
        *_missing_topics(view),
        *_differences(view),
        *_ignored_subscriptions(view),
        *_versions(view),
        *member_clocks(view),
        *_pins(view, pins),
    ]
    if any(member.error for member in view.members):  # not all owners are known
        return findings
    if any(found.kind == FindingKind.CLIENT_ID_SHARED for found in listed):  # one process of two answers
        return findings
    return [*_ownership(view), *_idle(view, pins), *findings]


def pin_obstacles(view: GroupView, ips: Sequence[str]) -> list[str]:
    """Reasons why pinning a group to ``ips`` would not have the expected effect; empty: no objection."""
    return [*_kind_obstacles(view), *_address_obstacles(view, ips), *_strategy_obstacles(view)]


def check_pin_copies(copies: Mapping[str, Pins | RocketMQError]) -> list[Finding]:
    """Look for name servers whose copy of a group's pins is ignored, unreadable or not the newest.

    One that does not answer is a finding only if the group is pinned: members may go by its copy.
    """
    known = [copy for copy in copies.values() if isinstance(copy, Pins)]
    valid = newest(NO_PINS, *known)
    findings: list[Finding] = []
    for addr, copy in copies.items():
        if isinstance(copy, RemotingError):
            text = f"name server {addr} does not answer, so its copy of the pins is not known: {copy}"
            silent = Finding(FindingKind.NAME_SERVER_SILENT, text, addr)
            findings += [silent] if valid.version else []
        elif isinstance(copy, RocketMQError):
            findings.append(Finding(FindingKind.PIN_COPIES_DIFFER, f"name server {addr} has no pins: {copy}"))
        elif copy != valid:
            text = (
                f"name server {addr} has pins of version {copy.version}, not {valid.version}: members that "
                "know only this one go by them: --repair writes the newest everywhere"
            )
            findings.append(Finding(FindingKind.PIN_COPIES_DIFFER, text))
    return findings


_REMEDIES = {
    FindingKind.MODELS_DIFFER: ": a broadcasting member gets every message and commits none of the group's "
    "offsets: give it a group of its own",
    FindingKind.NAME_SERVERS_DIFFER: ": all members must see the same brokers",
}


def _no_members(view: GroupView) -> Iterator[Finding]:
    if not view.proxied:
        yield Finding(FindingKind.NO_MEMBERS, f"group {view.group!r} has no members: nobody consumes")
    for one in view.proxied:
        text = (
            f"member {one.client_id} came through proxy {one.proxy}: no broker knows it, so none can ask it"
        )
        yield Finding(FindingKind.MEMBER_SILENT, text)


def _silent_brokers(view: GroupView) -> Iterator[Finding]:
    for name, error in view.silent_brokers.items():
        text = f"broker {name} does not answer, so nothing is known of its queues: {error}"
        yield Finding(FindingKind.BROKER_SILENT, text, name)


def _dead_letters(view: GroupView, limits: GroupLimits) -> Iterator[Finding]:
    """Find dead letters that are new; old ones are known."""
    dead = view.dead_letters
    age = (view.now_at() - dead.newest_ms) / 1000
    if dead.count and dead.newest_ms and age < limits.dead_letter:
        text = f"group {view.group!r} has {dead.count} dead letters, the newest {max(age, 0):.0f} s old"
        yield Finding(FindingKind.DEAD_LETTERS, f"{text}: its listener failed too often")


def _late(view: GroupView, limits: GroupLimits) -> Iterator[Finding]:
    """Compare lag and age with what the operator allows."""
    lag = sum(each.lag for each in view.progress.values())
    if limits.max_lag is not None and lag > limits.max_lag:
        worst = max(view.progress, key=lambda queue: view.progress[queue].lag)
        text = f"group {view.group!r} is {number_of(lag, 'message')} behind, more than {limits.max_lag}"
        most = f"{named([worst])} has the most, {view.progress[worst].lag}"
        yield Finding(FindingKind.LAG_LARGE, f"{text}: {most}")
    ages = {queue: age for queue in view.progress if (age := view.age(queue)) is not None}
    oldest = max(ages, key=lambda queue: ages[queue], default=None)
    if oldest is not None and limits.max_age is not None and ages[oldest] > limits.max_age:
        text = f"the oldest message that group {view.group!r} has not consumed is {ages[oldest]:.0f} s old"
        text += f", more than {limits.max_age:.0f} s: {named([oldest])}"
        yield Finding(FindingKind.MESSAGES_OLD, text)


def _proxied(view: GroupView) -> Iterator[Finding]:
    """Find members through a proxy beside direct ones: neither have the others in their list."""
    if view.proxied and view.message_model != MessageModel.BROADCASTING:
        through = ", ".join(f"{one.client_id} (proxy {one.proxy})" for one in view.proxied)
        directly = ", ".join(member.client_id for member in view.members)
        text = (
            f"members come through a proxy: {through}; and directly: {directly}: each side lacks the other's "
            "members, so each takes all queues and messages are consumed twice: give all the same name_server"
        )
        yield Finding(FindingKind.MEMBERS_PROXIED, text)


def _listed_again(view: GroupView) -> Iterator[Finding]:
    """Find members that brokers list several times, and tell two processes from a broker that stood still."""
    for member in view.members:
        again = {name: addrs for name, addrs in member.entries.items() if len(addrs) > 1}
        if not again:
            continue
        where = "; ".join(f"{name} from {', '.join(addrs)}" for name, addrs in sorted(again.items()))
        text = f"client id {member.client_id} is listed more than once: {where}"
        if len(again) == len(member.entries):
            remedy = "two processes use it, or a broker stood still: give each process its own instance_name"
            yield Finding(FindingKind.CLIENT_ID_SHARED, f"{text}: {remedy}")
        else:
            remedy = "that broker stood still: it forgets closed connections within two minutes"
            yield Finding(FindingKind.MEMBER_LISTED_AGAIN, f"{text}: {remedy}")


def _offsets(view: GroupView) -> Iterator[Finding]:
    """Find offsets beyond the ends of queues, topic by topic: it was made anew, or its end was lost."""
    beyond: defaultdict[str, list[MessageQueue]] = defaultdict(list)
    for queue, progress in view.progress.items():
        if progress.consumer_offset is not None and progress.consumer_offset > progress.max_offset:
            beyond[queue.topic].append(queue)
    for queues in beyond.values():
        first = view.progress[queues[0]]
        text = f"offset {first.consumer_offset} of {named(queues[:1])} is beyond its end {first.max_offset}"
        text += f"; the same of {named(queues[1:])}" if len(queues) > 1 else ""
        remedy = "members start again as for an offset that is not there, or reset it"
        yield Finding(FindingKind.OFFSET_BEYOND_END, f"{text}: {remedy}", queues=tuple(queues))


def _unreadable(view: GroupView) -> Iterator[Finding]:
    for one in view.unreadable:
        number = "unknown" if one.messages is None else one.messages
        text = (
            f"topic {one.topic} has {number_of(one.readable, 'queue')} to read and {one.written} to write on "
            f"{one.broker_name}: nobody can read the others (messages in them: {number})"
        )
        if not one.readable:
            text = (
                f"topic {one.topic} may not be read on {one.broker_name}: nobody gets the messages of its "
                f"{number_of(one.written, 'queue')} (messages in them: {number})"
            )
            remedy = f"allow it: rmqtools topic alter {one.topic} --perm rw"
            yield Finding(FindingKind.QUEUES_UNREADABLE, f"{text}: {remedy}")
        elif _is_retry(one.topic):
            remedy = "create the group again with the same retry_queue_nums"
            yield Finding(FindingKind.RETRY_QUEUES_UNREADABLE, f"{text}: {remedy}")
        else:
            remedy = "raise the read queues of the topic"
            yield Finding(FindingKind.QUEUES_UNREADABLE, f"{text}: {remedy}")


def _silent(view: GroupView) -> Iterator[Finding]:
    for member in view.members:
        if member.error:
            text = f"member {member.client_id} does not say what it does: {member.error}"
            yield Finding(FindingKind.MEMBER_SILENT, text, member.client_id)


def _missing_topics(view: GroupView) -> Iterator[Finding]:
    for topic in view.missing_topics:
        yield Finding(FindingKind.TOPIC_MISSING, f"topic {topic!r} is subscribed to and has no route")


def _ownership(view: GroupView) -> Iterator[Finding]:
    """Find wrong owners: broadcasting, each member owns every queue; otherwise one member owns each."""
    broadcasting = {member.client_id for member in view.members if _is_broadcasting(view, member)}
    everybody = len(broadcasting) == len(view.members)
    by_owners: defaultdict[tuple[str, ...], list[MessageQueue]] = defaultdict(list)
    for queue in _consumed(view):
        owners = [owner for owner in view.owners(queue) if everybody or owner not in broadcasting]
        if not owners or (len(owners) > 1 and not everybody and not _all_pop(view, queue)):
            by_owners[tuple(owners)].append(queue)
    for ids, queues in by_owners.items():
        kind = FindingKind.QUEUE_OWNED_TWICE if ids else FindingKind.QUEUE_UNOWNED
        owned = f"owned by {len(ids)} members: {', '.join(ids)}" if ids else "owned by nobody"
        verb = "is" if len(queues) == 1 else "are"
        yield Finding(kind, f"{named(queues)} {verb} {owned}", queues=tuple(queues))


def _idle(view: GroupView, pins: Pins) -> Iterator[Finding]:
    """Find members without a queue, except where pins of other members explain it."""
    for member in view.members:
        busy = any(not _is_retry(queue.topic) for queue in member.queues)
        if not busy and not (pins.ips and member.strategy == PINS and not _is_pinned(member, pins)):
            queues, members = number_of(len(_consumed(view)), "queue"), number_of(len(view.members), "member")
            text = f"member {member.client_id} owns no queue ({queues}, {members})"
            yield Finding(FindingKind.MEMBER_IDLE, text, member.client_id)


def _differences(view: GroupView) -> Iterator[Finding]:
    """Find settings that differ between members but must be the same."""
    subjects: tuple[tuple[FindingKind, str, Callable[[GroupMember], str | None]], ...] = (
        (FindingKind.SUBSCRIPTIONS_DIFFER, "subscribe to different things", _subscriptions),
        (FindingKind.STRATEGIES_DIFFER, "share by different strategies", lambda member: member.strategy),
        (FindingKind.MODES_DIFFER, "consume differently", _mode),
        (FindingKind.MODELS_DIFFER, "have different message models", lambda member: member.message_model),
        (FindingKind.NAME_SERVERS_DIFFER, "use different name servers", _servers),
    )
    for kind, what, value_of in subjects:
        by_value = _grouped(view, value_of)
        if len(by_value) > 1:
            parts = [f"{value}: {', '.join(ids)}" for value, ids in sorted(by_value.items())]
            yield Finding(kind, f"members {what}: {'; '.join(parts)}{_REMEDIES.get(kind, '')}")


def _ignored_subscriptions(view: GroupView) -> Iterator[Finding]:
    """Find brokers that keep another subscription, because it is newer by its time than all of the members.

    Source of the rule: ConsumerGroupInfo.updateSubscription (broker 5.5.0).
    """
    wanted = {each[0]: each for member in view.members for each in member.subscriptions}
    all_wanted = {each for member in view.members for each in member.subscriptions}
    for kept in view.broker_subscriptions:
        topic, expression, _ = kept.subscription
        times = [member.sub_versions[topic] for member in view.members if topic in member.sub_versions]
        is_newer = bool(times) and max(times) < kept.sub_version
        if topic not in wanted or kept.subscription in all_wanted or not is_newer:
            continue
        if any(member.error for member in view.members):  # it may be that member's
            return
        ignored, age = wanted[topic][1], (kept.sub_version - max(times)) / 1000
        text = (
            f"broker {kept.broker_name} filters topic {topic!r} by {expression!r} and ignores {ignored!r} of "
            f"the members, which is {age:.0f} s older by their clocks: a clock was set back: correct it, "
            "and start the members again"
        )
        yield Finding(FindingKind.SUBSCRIPTION_IGNORED, text)


def _pins(view: GroupView, pins: Pins) -> Iterator[Finding]:
    """Find what keeps pins from having their effect; none if no member shares by pins."""
    followers = [member for member in view.members if member.strategy == PINS and not member.error]
    for ip in pins.ips if followers else ():
        if not members_within(parse_networks([ip]), [member.client_id for member in view.members]):
            text = f"pinned ip {ip} is not that of any member (pins of version {pins.version})"
            yield Finding(FindingKind.PINNED_IP_ABSENT, text)
    for member in followers:
        if member.pin_version != pins.version:
            text = (
                f"member {member.client_id} goes by pins of version {member.pin_version}, not {pins.version}"
            )
            yield Finding(FindingKind.PINS_DIFFER, text)


def _kind_obstacles(view: GroupView) -> Iterator[str]:
    if view.message_model == MessageModel.BROADCASTING:
        yield "the group is broadcasting: every member gets every message, whatever is pinned"
    pops = [member.client_id for member in view.members if member.pops]
    if view.consume_type == ConsumeType.CONSUME_POP or pops:
        who = f" ({', '.join(pops)})" if pops else ""
        yield f"members pop{who}: brokers hand out the messages, whatever is pinned"


def _address_obstacles(view: GroupView, ips: Sequence[str]) -> Iterator[str]:
    client_ids = [member.client_id for member in view.members]
    there = ", ".join(client_ids) or "there are no members at all"
    for ip in ips:
        if not members_within(parse_networks([ip]), client_ids):
            yield f"no live member has ip {ip}; members: {there}"


def _strategy_obstacles(view: GroupView) -> Iterator[str]:
    for member in view.members:
        if member.strategy != PINS:
            known = member.error or f"its strategy is {member.strategy or 'unknown'}"
            language = f", {member.language}" if member.language else ""
            yield f"member {member.client_id}{language} does not share by {PINS}: {known}"


def _consumed(view: GroupView) -> list[MessageQueue]:
    """Return the queues that must have an owner: those of the topics that members subscribe to now.

    Without the retry topic: members find it up to 30 s after its creation, and until then it is no error
    that its queues have no owner.
    """
    topics = {topic for member in view.members for topic, _, _ in member.subscriptions}
    return [queue for queue in view.progress if queue.topic in topics]


def _all_pop(view: GroupView, queue: MessageQueue) -> bool:
    return all(queue in member.pops for member in view.members if queue in member.queues)


def _is_pinned(member: GroupMember, pins: Pins) -> bool:
    return bool(members_within(parse_networks(pins.ips), [member.client_id]))


def _grouped(view: GroupView, value_of: Callable[[GroupMember], str | None]) -> dict[str, list[str]]:
    """Client ids by a value that members report; members that do not report it are left out."""
    by_value: defaultdict[str, list[str]] = defaultdict(list)
    for member in view.members:
        if not member.error and (value := value_of(member)) is not None:
            by_value[value].append(member.client_id)
    return by_value


def _subscriptions(member: GroupMember) -> str:
    texts = [f"{topic} {kind} {expression!r}" for topic, expression, kind in sorted(member.subscriptions)]
    return ", ".join(texts) or "nothing"


def _mode(member: GroupMember) -> str | None:
    return None if member.orderly is None else "in order" if member.orderly else "concurrently"


def _is_broadcasting(view: GroupView, member: GroupMember) -> bool:
    return (member.message_model or view.message_model) == MessageModel.BROADCASTING


def _servers(member: GroupMember) -> str | None:
    return member.name_server


def _version(member: GroupMember) -> str | None:
    ours = member.rmqtools_version
    return member.version or None if ours is None else f"{member.version} (rmqtools {ours})"


def _versions(view: GroupView) -> Iterator[Finding]:
    """Find members of one language with different versions of its client."""
    for language in sorted({member.language for member in view.members if member.language}):
        same = replace(view, members=tuple(one for one in view.members if one.language == language))
        by_version = _grouped(same, _version)
        if len(by_version) > 1:
            parts = [f"{version}: {', '.join(ids)}" for version, ids in sorted(by_version.items())]
            text = f"members in {language} have different versions: {'; '.join(parts)}"
            yield Finding(FindingKind.VERSIONS_DIFFER, text)


def _is_retry(topic: str) -> bool:
    return topic.startswith(RETRY_GROUP_TOPIC_PREFIX)


class Settling:
    """Remembers since when each group has had findings that half of a rebalance makes, too."""

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
        before = self._since.pop(group, {})
        since: dict[_Key, float] = {}
        wait = 0.0
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
