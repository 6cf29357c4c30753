"""Checks of a consumer group by its members' own reports. Pure."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from rmqtools.errors import RocketMQError
from rmqtools.model.group import ConsumeType, MessageModel
from rmqtools.model.group_view import Finding, FindingKind, GroupMember, GroupView
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.allocate.addresses import members_within, parse_networks
from rmqtools.policy.allocate.by_pins import AllocateByPins
from rmqtools.policy.allocate.pins import NO_PINS, Pins, newest

PINS = AllocateByPins.name


def check_group(view: GroupView, pins: Pins = NO_PINS) -> list[Finding]:
    """Look for problems that operators care about.

    Args:
        view: the group. It may show half of a rebalance: check again before you act.
        pins: the pins that are valid now (``pins.at(now)``).

    Returns:
        Findings, the most important first; empty if all is well.
    """
    if not view.members:
        return [Finding(FindingKind.NO_MEMBERS, f"group {view.group!r} has no members: nobody consumes")]
    findings = [*_silent(view), *_missing_topics(view), *_differences(view), *_pins(view, pins)]
    if not any(member.error for member in view.members):  # all owners are known
        findings = [*_ownership(view), *_idle(view, pins), *findings]
    return findings


def pin_obstacles(view: GroupView, ips: Sequence[str]) -> list[str]:
    """Reasons why pinning a group to ``ips`` would not have the expected effect; empty: no objection."""
    return [*_kind_obstacles(view), *_address_obstacles(view, ips), *_strategy_obstacles(view)]


def check_pin_copies(copies: Mapping[str, Pins | RocketMQError]) -> list[Finding]:
    """Look for name servers whose copy of a group's pins is ignored, unreadable or not the newest."""
    known = [copy for copy in copies.values() if isinstance(copy, Pins)]
    valid = newest(NO_PINS, *known)
    findings: list[Finding] = []
    for addr, copy in copies.items():
        if isinstance(copy, RocketMQError):
            findings.append(Finding(FindingKind.PIN_COPIES_DIFFER, f"name server {addr} has no pins: {copy}"))
        elif copy != valid:
            text = (
                f"name server {addr} has pins of version {copy.version}, not {valid.version}: members that "
                "know only this one go by them: --repair writes the newest everywhere"
            )
            findings.append(Finding(FindingKind.PIN_COPIES_DIFFER, text))
    return findings


def _silent(view: GroupView) -> Iterator[Finding]:
    for member in view.members:
        if member.error:
            text = f"member {member.client_id} does not say what it does: {member.error}"
            yield Finding(FindingKind.MEMBER_SILENT, text)


def _missing_topics(view: GroupView) -> Iterator[Finding]:
    for topic in view.missing_topics:
        yield Finding(FindingKind.TOPIC_MISSING, f"topic {topic!r} is subscribed to and has no route")


def _ownership(view: GroupView) -> Iterator[Finding]:
    """Find wrong owners: broadcasting, each member owns every queue; otherwise one member owns each."""
    everybody = view.message_model == MessageModel.BROADCASTING
    for queue in _consumed(view):
        owners = view.owners(queue)
        if not owners:
            yield Finding(FindingKind.QUEUE_UNOWNED, f"{_name(queue)} is owned by nobody")
        elif len(owners) > 1 and not everybody and not _all_pop(view, queue):
            text = f"{_name(queue)} is owned by {len(owners)} members: {', '.join(owners)}"
            yield Finding(FindingKind.QUEUE_OWNED_TWICE, text)


def _idle(view: GroupView, pins: Pins) -> Iterator[Finding]:
    """Find members without a queue, except where pins of other members explain it."""
    for member in view.members:
        busy = any(not _is_retry(queue.topic) for queue in member.queues)
        if not busy and not (pins.ips and member.strategy == PINS and not _is_pinned(member, pins)):
            count = len(_consumed(view))
            text = f"member {member.client_id} owns no queue ({count} queues, {len(view.members)} members)"
            yield Finding(FindingKind.MEMBER_IDLE, text)


def _differences(view: GroupView) -> Iterator[Finding]:
    """Find settings that differ between members but must be the same."""
    subjects: tuple[tuple[FindingKind, str, Callable[[GroupMember], str | None]], ...] = (
        (FindingKind.SUBSCRIPTIONS_DIFFER, "subscribe to different things", _subscriptions),
        (FindingKind.STRATEGIES_DIFFER, "share by different strategies", lambda member: member.strategy),
        (FindingKind.MODES_DIFFER, "consume differently", _mode),
    )
    for kind, what, value_of in subjects:
        by_value = _grouped(view, value_of)
        if len(by_value) > 1:
            parts = [f"{value}: {', '.join(ids)}" for value, ids in sorted(by_value.items())]
            yield Finding(kind, f"members {what}: {'; '.join(parts)}")


def _pins(view: GroupView, pins: Pins) -> Iterator[Finding]:
    for ip in pins.ips:
        if not members_within(parse_networks([ip]), [member.client_id for member in view.members]):
            text = f"pinned ip {ip} is not that of any member (pins of version {pins.version})"
            yield Finding(FindingKind.PINNED_IP_ABSENT, text)
    late = [member for member in view.members if member.strategy == PINS and not member.error]
    for member in late:
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
    """The queues that must have an owner: those of the topics that members subscribe to now.

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


def _is_retry(topic: str) -> bool:
    return topic.startswith(RETRY_GROUP_TOPIC_PREFIX)


def _name(queue: MessageQueue) -> str:
    return f"queue {queue.topic} {queue.broker_name}[{queue.queue_id}]"
