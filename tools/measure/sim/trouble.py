"""Troubles of a simulated run and their times, drawn from a seed before the run begins.

Every trouble ends before the load does, so that unfinished work at the end is the engine's fault.
"""

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from rmqtools.errors import RemotingError
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.testing import NAME_SERVER, FakeCluster, Reaction
from tools.measure.faults.fault_proxy import FaultProxy
from tools.measure.faults.load import Load

BROKERS = ("broker-a", "broker-b")
_CUTS = (1, 4, 20, 30, 200, 3000)  # bytes of answers: in the length, in the header, in the body
_REFUSALS = (ResponseCode.SYSTEM_BUSY, ResponseCode.SYSTEM_ERROR, ResponseCode.SERVICE_NOT_AVAILABLE)
_SEND = RequestCode.SEND_MESSAGE_V2
_MOST_TROUBLES = 6
STANDS_STILL = "the broker stands still:"


@dataclass
class World:
    """Targets of troubles."""

    cluster: FakeCluster
    proxies: dict[str, FaultProxy]
    load: Load
    topic: str
    queues: int = 4
    away: Counter[str] = field(default_factory=Counter)
    """How many troubles keep a server away."""
    frozen: Counter[str] = field(default_factory=Counter)
    """How many troubles make a server stand still."""
    stood_still: set[str] = field(default_factory=set)
    has_left_unseen: bool = False
    """A member left while a broker stood still: that broker may list it for two minutes."""


@dataclass(frozen=True)
class Trouble:
    """One trouble: what, where, from when to when in seconds of the load, and a number that it reads."""

    what: str
    where: str
    begins: float
    ends: float
    number: int

    def __str__(self) -> str:
        return f"{self.begins:.2f}-{self.ends:.2f} s {self.what} {self.where} ({self.number})"


def plan(chance: random.Random, seconds: float) -> list[Trouble]:
    """Plan the troubles of one run, by their beginning."""
    troubles = []
    for _ in range(chance.randint(1, _MOST_TROUBLES)):
        begins = chance.uniform(0.0, 0.8 * seconds)
        what, where = chance.choice(list(KINDS)), chance.choice(BROKERS)
        ends = min(0.9 * seconds, begins + chance.expovariate(2 / seconds))
        if what == STANDS_STILL:  # long enough for clients to give up connections and make new ones
            begins, ends = 0.3 * begins, 0.9 * seconds
        troubles.append(Trouble(what, where, begins, ends, chance.randrange(1 << 30)))
    return sorted(troubles, key=lambda trouble: trouble.begins)


async def begin(trouble: Trouble, world: World) -> None:
    """Let it strike."""
    await KINDS[trouble.what].begin(trouble, world)


def end(trouble: Trouble, world: World) -> None:
    """Undo it, as far as it can be undone; what another trouble still does there ends with it."""
    KINDS[trouble.what].end(trouble, world)


async def _stop_noticed(trouble: Trouble, world: World) -> None:
    _stop(world, trouble.where, in_route=False)


async def _stop_unnoticed(trouble: Trouble, world: World) -> None:
    _stop(world, trouble.where)


async def _stop_name_server(_: Trouble, world: World) -> None:
    _stop(world, NAME_SERVER)


def _stop(world: World, name: str, *, in_route: bool = True) -> None:
    world.cluster.stop(name, in_route=in_route)
    world.away[name] += 1


def _restart_broker(trouble: Trouble, world: World) -> None:
    _restart(world, trouble.where)


def _restart_name_server(_: Trouble, world: World) -> None:
    _restart(world, NAME_SERVER)


def _restart(world: World, name: str) -> None:
    world.away[name] -= 1
    if not world.away[name]:
        world.cluster.restart(name)


async def _drop_answers(trouble: Trouble, world: World) -> None:
    world.proxies[trouble.where].drop_replies = True


async def _drop_requests(trouble: Trouble, world: World) -> None:
    world.proxies[trouble.where].drop_requests = True


async def _cut(trouble: Trouble, world: World) -> None:
    world.proxies[trouble.where].cut_after = _CUTS[trouble.number % len(_CUTS)]
    world.proxies[trouble.where].reset()


async def _slow(trouble: Trouble, world: World) -> None:
    world.proxies[trouble.where].delay = 0.01 + trouble.number % 500 / 1000


async def _pause(trouble: Trouble, world: World) -> None:
    world.proxies[trouble.where].pause()


async def _freeze(trouble: Trouble, world: World) -> None:
    world.stood_still.add(trouble.where)
    world.cluster.freeze(trouble.where)
    world.frozen[trouble.where] += 1


def _thaw(trouble: Trouble, world: World) -> None:
    world.frozen[trouble.where] -= 1
    if not world.frozen[trouble.where]:
        world.cluster.thaw(trouble.where)


async def _disconnect(trouble: Trouble, world: World) -> None:
    world.proxies[trouble.where].reset()


def _heal(trouble: Trouble, world: World) -> None:
    proxy = world.proxies[trouble.where]
    torn = proxy.drop_replies or proxy.drop_requests
    proxy.heal()
    if torn:  # these streams lack bytes somewhere
        proxy.reset()


async def _refuse(trouble: Trouble, world: World) -> None:
    code = _REFUSALS[trouble.number % len(_REFUSALS)]
    world.cluster.fault(code=_SEND, broker=trouble.where, times=1 + trouble.number % 7, answer=code)


async def _swallow(trouble: Trouble, world: World) -> None:
    answer = (Reaction.SWALLOW, Reaction.SILENCE, Reaction.DISCONNECT)[trouble.number % 3]
    world.cluster.fault(broker=trouble.where, times=1 + trouble.number % 5, answer=answer)


async def _add_queues(trouble: Trouble, world: World) -> None:
    world.queues += 1 + trouble.number % 2
    world.cluster.create_topic(world.topic, queues=world.queues)


async def _add_member(trouble: Trouble, world: World) -> None:
    with suppress(RemotingError):  # it cannot start while nobody answers, and says so
        await world.load.add_reader(f"r{trouble.number}")


async def _remove_member(_: Trouble, world: World) -> None:
    world.has_left_unseen |= any(world.frozen.values())
    await world.load.remove_reader()


def _leave_it(_: Trouble, __: World) -> None:
    """Do nothing: what it did stays, or ends by itself."""


@dataclass(frozen=True)
class Kind:
    """Begin and end of a kind of trouble."""

    begin: Callable[[Trouble, World], Awaitable[None]]
    end: Callable[[Trouble, World], None] = _leave_it


KINDS = {
    "the broker dies unnoticed:": Kind(_stop_unnoticed, _restart_broker),
    "the broker dies and leaves the route:": Kind(_stop_noticed, _restart_broker),
    "the name server is away": Kind(_stop_name_server, _restart_name_server),
    "answers are dropped by": Kind(_drop_answers, _heal),
    "requests are dropped before": Kind(_drop_requests, _heal),
    "answers are cut by": Kind(_cut, _heal),
    "the link is slow to": Kind(_slow, _heal),
    "the link stands still to": Kind(_pause, _heal),
    STANDS_STILL: Kind(_freeze, _thaw),
    "connections are reset to": Kind(_disconnect),
    "sends are refused by": Kind(_refuse),
    "requests are lost by": Kind(_swallow),
    "there are more queues": Kind(_add_queues),
    "a member joins": Kind(_add_member),
    "a member leaves": Kind(_remove_member),
}
