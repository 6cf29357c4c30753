"""Groups of two members, of ours and of Java's: owners and order of each queue while a broker stands still.

The first member runs before the stall. The second one starts in it ("starting"), or runs before it too
("running"). All groups are in the same stall, on the same servers.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field

from rmqtools import MessageQueue
from tests.support.java_consumer import JavaConsumer, PythonConsumer
from tests.support.java_peer import JavaPeer
from tools.measure.stalled_broker.scene import EVERY, HEALTHY, QUEUES, TOPIC, Scene, Stall, running_scene

GROUPS = {"java, ours": "jo", "ours, java": "oj", "java, java": "jj", "ours, ours": "oo"}
"""Members of each group, in the order of their starts and of their client ids."""
_TICK = 0.25  # seconds between two looks at the owners
_ROUND = 20.0  # rebalance interval of both clients
_STARTED = 120.0  # seconds within which a member starts: Java's waits for the broker that stands still


@dataclass
class Owners:
    """Owners of a group's queues over time, in seconds."""

    unowned: dict[MessageQueue, float] = field(default_factory=lambda: dict.fromkeys(EVERY, 0.0))
    """The longest time in which a queue had no owner."""
    twice: float = 0.0
    """With several owners, summed over the queues."""
    _free_since: dict[MessageQueue, float] = field(default_factory=dict)
    _last: float | None = None

    def look(self, at: float, held: Counter[MessageQueue]) -> None:
        """Add the owners of one moment."""
        passed = at - (at if self._last is None else self._last)
        self._last = at
        self.twice += passed * sum(count > 1 for count in held.values())
        for queue in EVERY:
            if held[queue]:
                self._free_since.pop(queue, None)
            else:
                since = self._free_since.setdefault(queue, at)
                self.unowned[queue] = max(self.unowned[queue], at - since)


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Events of one group. Times in seconds; messages of the healthy broker."""

    unowned: float
    """The longest time in which a queue of the healthy broker had no owner."""
    unowned_sick: float
    """The same of broker-a's queues."""
    twice: float
    sent: int
    received: int
    again: int
    """Deliveries of messages that a member of the group had already."""
    reorder: int
    """First deliveries after that of a later message of the same queue."""


def show_mixed(peer: JavaPeer, name: str, stall: Stall, *, seconds: float, orderly: bool) -> int:
    """Run one situation and print a line for each group; return the number of bars that are not met."""
    seen = run_mixed(peer, stall, seconds=seconds, starting=name == "starting", orderly=orderly)
    print(
        f"mixed, {name}, {'in order' if orderly else 'concurrently'}: "
        f"broker-a stands still from {stall.begin:g} to {stall.end:g} s"
    )
    print("  members       unowned s: healthy  sick   twice, queue-s   received of sent   again  reorder")
    for members, one in seen.items():
        print(
            f"  {members:12}  {one.unowned:18.1f} {one.unowned_sick:5.1f} {one.twice:16.1f}"
            f" {one.received:10} of {one.sent:4} {one.again:7} {one.reorder if orderly else '-':>8}"
        )
    missed = unmet(seen, orderly=orderly)
    print(f"  bars not met: {'; '.join(missed) or 'none'}", flush=True)
    return len(missed)


def unmet(seen: dict[str, Seen], *, orderly: bool) -> list[str]:
    """Return the bars that groups with a member of ours do not meet, beside two Java members."""
    java, found = seen["java, java"], []
    for members, one in seen.items():
        if one is java:
            continue
        if one.unowned > max(_ROUND, java.unowned) + 1:
            found.append(f"{members}: {one.unowned:.1f} s unowned, Java {java.unowned:.1f}")
        if one.twice > java.twice + _TICK * len(EVERY):
            found.append(f"{members}: {one.twice:.1f} queue-seconds owned twice, Java {java.twice:.1f}")
        if one.received < java.received - QUEUES:  # more than a second's
            found.append(f"{members}: {one.received} messages, Java {java.received}")
        if orderly and one.reorder:
            found.append(f"{members}: {one.reorder} out of order")
    return found


def run_mixed(
    peer: JavaPeer, stall: Stall, *, seconds: float, starting: bool, orderly: bool
) -> dict[str, Seen]:
    """Run the groups through one stall, on servers of their own."""
    options = ("--print", "--orderly") if orderly else ("--print",)
    with running_scene() as scene, ExitStack() as stack:
        groups = {
            members: [
                _member(peer, who, scene, short, number, options)
                for number, who in enumerate(members.split(", "))
            ]
            for members, short in GROUPS.items()
        }
        first = [member for pair in groups.values() for member in pair[:1]]
        second = [member for pair in groups.values() for member in pair[1:]]
        for member in first if starting else [*first, *second]:  # one by one: a start takes CPU
            _start(member, stack)
        for pair in groups.values():
            pair[0].await_assigned(len(EVERY) if starting else len(EVERY) // 2, timeout=_STARTED)
        late = second if starting else []
        with ThreadPoolExecutor(max(1, len(late))) as pool:
            return _watch(
                scene,
                stall,
                seconds,
                groups,
                lambda: [pool.submit(_start, member, stack) for member in late],
            )


def _watch(
    scene: Scene,
    stall: Stall,
    seconds: float,
    groups: dict[str, list[JavaConsumer]],
    start: Callable[[], list[Future[None]]],
) -> dict[str, Seen]:
    owners = {members: Owners() for members in groups}
    starts: list[Future[None]] | None = None
    for at in scene.ticks(stall, seconds, every=_TICK):
        if starts is None and at >= stall.begin:
            starts = start()
        for members, pair in groups.items():
            owners[members].look(at, Counter(queue for member in pair for queue in member.assigned))
    for one in starts or ():
        one.result()
    return {members: _seen(scene, owners[members], pair) for members, pair in groups.items()}


def _seen(scene: Scene, owners: Owners, pair: list[JavaConsumer]) -> Seen:
    rows = [row for member in pair for row in member.messages if row["brokerName"] == HEALTHY]
    places = [(row["queueId"], row["queueOffset"]) for row in sorted(rows, key=lambda row: row["seenAt"])]
    return Seen(
        unowned=max(owners.unowned[queue] for queue in EVERY if queue.broker_name == HEALTHY),
        unowned_sick=max(owners.unowned[queue] for queue in EVERY if queue.broker_name != HEALTHY),
        twice=owners.twice,
        sent=scene.sent,
        received=len(set(places)),
        again=len(places) - len(set(places)),
        reorder=reordered(places),
    )


def reordered(places: Iterable[tuple[int, int]]) -> int:
    """Count the first deliveries that came after a later message of their queue: (queue id, offset)."""
    seen: set[tuple[int, int]] = set()
    latest: dict[int, int] = {}
    count = 0
    for queue_id, offset in places:
        if (queue_id, offset) not in seen:
            count += offset < latest.get(queue_id, -1)
            latest[queue_id] = max(offset, latest.get(queue_id, -1))
            seen.add((queue_id, offset))
    return count


def _member(
    peer: JavaPeer, who: str, scene: Scene, group: str, number: int, options: tuple[str, ...]
) -> JavaConsumer:
    chosen = (*options, "--instance", f"{number}-{who}")
    if who == "java":
        return JavaConsumer(peer, scene.name_server, f"mixed-{group}", TOPIC, *chosen)
    return PythonConsumer(scene.name_server, f"mixed-{group}", TOPIC, *chosen)


def _start(member: JavaConsumer, stack: ExitStack) -> None:
    member.start(timeout=_STARTED)
    stack.push(member)
