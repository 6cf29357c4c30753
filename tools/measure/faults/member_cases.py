"""Members of a group that are killed in the middle of a batch."""

import asyncio
import contextlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from tools.measure.faults.bench import Bench
from tools.measure.faults.checker import Verdict, marked
from tools.measure.faults.figures import Figure, at_most, holds, within
from tools.measure.faults.history import Place
from tools.measure.faults.run import Outcome, Scene

_MEMBERS, _QUEUES_PER_BROKER = 4, 4
_BATCH = 10
_REBALANCE_SECONDS = 20.0
_SETTLE_SECONDS = 60.0


@dataclass
class _Member:
    """One process, and what it holds as far as it has said."""

    name: str
    process: asyncio.subprocess.Process
    held: set[tuple[str, int]] = field(default_factory=set)
    listening: "asyncio.Task[None] | None" = None


class _Group:
    """Members of the load's group, each a process; what they read goes into the history."""

    def __init__(self, scene: Scene, settings: dict[str, object]) -> None:
        self._scene = scene
        self._settings = settings
        self.members: list[_Member] = []
        self.changed_at = 0.0
        self._has_changed = asyncio.Event()
        self.at_end: list[tuple[str, int]] = []

    async def join(self, name: str) -> None:
        """Start one more member."""
        scene = self._scene
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tools.measure.faults.member", scene.site.name_server, scene.topic),
            *(scene.load.group, json.dumps(self._settings)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        member = _Member(name, process)
        member.listening = asyncio.create_task(self._listen(member))
        self.members.append(member)

    async def kill(self, member: _Member) -> None:
        """End it with SIGKILL."""
        self.members.remove(member)
        member.process.kill()
        await member.process.wait()
        assert member.listening is not None
        await member.listening
        self._scene.load.holds(member.name, ())

    async def close(self) -> None:
        """Let all end; :attr:`at_end` is what they held."""
        self.at_end = self.shared()
        for member in self.members:
            assert member.process.stdin is not None
            member.process.stdin.close()
        for member in list(self.members):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(20):
                    await member.process.wait()
            if member.process.returncode is None:
                member.process.kill()
            assert member.listening is not None
            await member.listening

    async def settle(self, queues: int) -> None:
        """Wait, a minute at most, until every member has queues, and every queue one member."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SETTLE_SECONDS):
                while not (_is_partition(self.shared(), queues) and all(m.held for m in self.members)):
                    self._has_changed.clear()
                    await self._has_changed.wait()

    def shared(self) -> list[tuple[str, int]]:
        """Return the queues held, of all members together; one named twice is held twice."""
        return sorted(queue for member in self.members for queue in member.held)

    async def _listen(self, member: _Member) -> None:
        assert member.process.stdout is not None
        async for line in member.process.stdout:
            row = json.loads(line)
            if "held" in row:
                member.held = {(broker, queue) for broker, queue in row["held"]}
                self._scene.load.holds(member.name, member.held)
                self._has_changed.set()
                self.changed_at = self._scene.history.at()
            else:
                place = Place(*row["read"])
                self._scene.load.was_read("group", member.name, place, bytes.fromhex(row["body"]), row["key"])


async def killed_members(bench: Bench) -> Outcome:
    """Of four members one is killed; later another one joins."""
    queues = _QUEUES_PER_BROKER * len(bench.site.broker_addrs)
    groups: list[_Group] = []
    settled: list[float] = []
    shared: list[Sequence[tuple[str, int]]] = []

    async def join(scene: Scene) -> None:
        groups.append(_Group(scene, dict(bench.client) | dict(bench.reader) | {"poll_batch_size": _BATCH}))
        scene.closing.push_async_callback(groups[0].close)
        for number in range(_MEMBERS):
            await groups[0].join(f"m{number}")
        await groups[0].settle(queues)

    async def kill(scene: Scene) -> None:
        holding = max(groups[0].members, key=lambda member: len(member.held))
        await groups[0].kill(holding)

    async def join_again(scene: Scene) -> None:
        shared.append(groups[0].shared())
        settled.append(groups[0].changed_at - marked(scene.events, "fault"))
        await groups[0].join("m9")
        await groups[0].settle(queues)

    def judge(_: Scene, verdict: Verdict) -> list[Figure]:
        return [
            at_most("read twice", verdict.redelivered, _BATCH),
            holds("each queue has one member", _is_partition(shared[0], queues), f"{len(shared[0])} held"),
            holds("and has one again at the end", _is_partition(groups[0].at_end, queues)),
            within("shares settled after the kill", settled[0], 2 * _REBALANCE_SECONDS),
        ]

    return await bench.under_load(
        prepare=join, fault=kill, heal=join_again, judge=judge, readers=0, queues=_QUEUES_PER_BROKER
    )


def _is_partition(held: Sequence[tuple[str, int]], queues: int) -> bool:
    return len(held) == len(set(held)) == queues
