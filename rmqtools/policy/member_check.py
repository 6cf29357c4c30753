"""Checks of single members of a group by their own reports: stuck, failing, with another clock. Pure.

The seconds since a member consumed a queue's last message say nothing while there was none: a check reads the
first fetched message, and its age counts too (``GroupMember.fetched_ms``).
"""

from collections.abc import Iterator, Sequence

from rmqtools.model.group_view import Finding, FindingKind, GroupLimits, GroupMember, GroupView
from rmqtools.model.queue import MessageQueue, queue_name
from rmqtools.policy.clocks import CLOCK_LIMIT, difference

_MOST_NAMED = 8  # queues in a text


def stuck_members(view: GroupView, limits: GroupLimits) -> Iterator[Finding]:
    """Find listeners that do not return, and queues from which nothing is fetched or consumed.

    A member has one finding of each kind. Queues that wait while a listener does not return are in its.
    """
    for member in view.members:
        blocked = _blocked(view, member, limits)
        if member.longest_call is not None and member.longest_call > limits.listener:
            yield _slow_listener(member, list(blocked))
        elif blocked:
            yield _nothing_consumed(member, blocked)
        if member.waiting:
            yield _failing_queue(member)
        yield from _not_fetched(view, member, limits)


def silent_queues(view: GroupView, member: GroupMember, limits: GroupLimits) -> dict[MessageQueue, range]:
    """Return the fetched offsets of queues of which a member has consumed nothing for a while.

    They may be blocked, or a message has just ended a quiet time: the age of the first message shows which.
    """
    since_ms = _now_at(view, member) - limits.listener * 1000
    quiet = {
        queue: state for queue, state in member.states.items() if state.last_consume_timestamp < since_ms
    }
    return {queue: state.fetched for queue, state in quiet.items() if state.fetched}


def failing_members(view: GroupView) -> Iterator[Finding]:
    """Find members whose listener fails now."""
    for member in view.members:
        texts = [
            f"{each.consume_failed_tps:.2f} messages/s of topic {topic}, "
            f"{each.consume_failed_msgs} in the last hour"
            for topic, each in sorted(member.rates.items())
            if each.consume_failed_tps > 0
        ]
        if texts:
            text = f"member {member.client_id} fails for {'; '.join(texts)}{_error(member)}"
            yield Finding(FindingKind.MEMBER_FAILS, text, member.client_id)


def member_clocks(view: GroupView) -> Iterator[Finding]:
    """Find members whose clock differs from those of the brokers; of most clients only one ahead is seen."""
    for member in view.members:
        seen_ms = view.now_ms + round(member.clock * 1000) if member.now_ms else member.newest_ms
        seconds = (seen_ms - view.now_at()) / 1000 if view.now_ms else 0.0
        if seconds > CLOCK_LIMIT or (member.now_ms and -seconds > CLOCK_LIMIT):
            text = f"the clock of member {member.client_id} is {difference(seconds)} those of the brokers"
            yield Finding(FindingKind.CLOCK_DIFFERS, f"{text}: set it right", member.client_id)


def named(queues: Sequence[MessageQueue]) -> str:
    """Return queues as a text, each as options take it: ``BROKER:QUEUE``."""
    names = [f"{queue.topic} {queue_name(queue)}" for queue in queues]
    if len(names) == 1:
        return f"queue {names[0]}"
    more = len(names) - _MOST_NAMED
    return f"{len(names)} queues ({', '.join(names[:_MOST_NAMED])}{f' and {more} more' if more > 0 else ''})"


def _blocked(view: GroupView, member: GroupMember, limits: GroupLimits) -> dict[MessageQueue, float]:
    """Return the queues of which nothing is consumed although messages are fetched, and the seconds."""
    found: dict[MessageQueue, float] = {}
    for queue, state in sorted(member.states.items()):
        seconds = _seconds_since(view, member, state.last_consume_timestamp)
        if first_ms := member.fetched_ms.get(queue):  # nothing was there to consume before
            seconds = min(seconds, (view.now_at(queue.broker_name) - first_ms) / 1000)
        if _fetched(member, [queue]) and seconds > limits.listener:
            found[queue] = seconds
    return found


def _slow_listener(member: GroupMember, blocked: Sequence[MessageQueue]) -> Finding:
    text = f"a listener call of member {member.client_id} runs for {member.longest_call:.0f} s"
    if blocked:
        text += f", and {_fetched(member, blocked)} fetched messages of {named(blocked)} wait"
    advice = "look at the stacks of its threads"
    return Finding(FindingKind.LISTENER_SLOW, f"{text}: {advice}", member.client_id, tuple(blocked))


def _nothing_consumed(member: GroupMember, blocked: dict[MessageQueue, float]) -> Finding:
    queues = list(blocked)
    text = (
        f"member {member.client_id} has {_fetched(member, queues)} fetched messages of {named(queues)} and "
        f"has consumed none for {max(blocked.values()):.0f} s"
    )
    remedy = "a listener call may never return (look at the stacks of its threads), or nobody polls"
    return Finding(FindingKind.QUEUE_BLOCKED, f"{text}: {remedy}", member.client_id, tuple(queues))


def _failing_queue(member: GroupMember) -> Finding:
    first, *more = member.waiting
    queues = [one.queue for one in more]
    text = (
        f"{named([first.queue])} waits for offset {first.queue_offset}, which failed {first.times} times at "
        f"member {member.client_id}{_error(member)}"
    )
    text += f"; {named(queues)} wait in the same way" if queues else ""
    return Finding(FindingKind.QUEUE_BLOCKED, text, member.client_id, (first.queue, *queues))


def _not_fetched(view: GroupView, member: GroupMember, limits: GroupLimits) -> Iterator[Finding]:
    seconds = {
        queue: _seconds_since(view, member, state.last_pull_timestamp)
        for queue, state in sorted(member.states.items())
        if not _fetched(member, [queue]) and _lag(view, [queue])
    }
    queues = [queue for queue, since in seconds.items() if since > limits.fetch]
    if queues:
        longest = max(seconds[queue] for queue in queues)
        text = f"member {member.client_id} holds {named(queues)} and has not fetched for {longest:.0f} s"
        remedy = f"{_lag(view, queues)} messages behind: is it paused, or cut off from that broker?"
        yield Finding(FindingKind.QUEUE_NOT_FETCHED, f"{text}, {remedy}", member.client_id, tuple(queues))


def _fetched(member: GroupMember, queues: Sequence[MessageQueue]) -> int:
    states = [member.states[queue] for queue in queues]
    return sum(state.cached_msg_count + state.transaction_msg_count for state in states)


def _lag(view: GroupView, queues: Sequence[MessageQueue]) -> int:
    return sum(view.progress[queue].lag for queue in queues if queue in view.progress)


def _seconds_since(view: GroupView, member: GroupMember, then_ms: int) -> float:
    """Seconds from a time of a member's clock to the view's; 0 if either is unknown."""
    return (_now_at(view, member) - then_ms) / 1000 if view.now_ms and then_ms else 0.0


def _now_at(view: GroupView, member: GroupMember) -> int:
    """Return the time of a member; if it does not report it: the brokers', or the latest in its report."""
    return member.now_ms or max(view.now_at(), member.newest_ms)


def _error(member: GroupMember) -> str:
    return f": {member.last_error}" if member.last_error else ""
