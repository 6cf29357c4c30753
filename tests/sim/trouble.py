"""What goes wrong in a simulated run, and when: drawn from a seed before the run begins.

Every trouble ends before the load does, so that what is left undone at the end is the engine's fault.
"""

import random
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

from rmqtools.errors import RemotingError
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.testing import NAME_SERVER, FakeCluster, Reaction
from tests.faults.fault_proxy import FaultProxy
from tests.faults.load import Load

BROKERS = ("broker-a", "broker-b")
_CUTS = (1, 4, 20, 30, 200, 3000)  # bytes of answers: in the length, in the header, in the body
_REFUSALS = (ResponseCode.SYSTEM_BUSY, ResponseCode.SYSTEM_ERROR, ResponseCode.SERVICE_NOT_AVAILABLE)
_SEND = RequestCode.SEND_MESSAGE_V2
_MOST_TROUBLES = 6


@dataclass
class World:
    """What troubles strike."""

    cluster: FakeCluster
    proxies: dict[str, FaultProxy]
    load: Load
    topic: str
    queues: int = 4
    away: Counter[str] = field(default_factory=Counter)
    """How many troubles keep a server away."""


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
    """The troubles of one run, by their beginning."""
    troubles = []
    for _ in range(chance.randint(1, _MOST_TROUBLES)):
        begins = chance.uniform(0.0, 0.8 * seconds)
        troubles.append(
            Trouble(
                what=chance.choice(list(KINDS)),
                where=chance.choice(BROKERS),
                begins=begins,
                ends=min(0.9 * seconds, begins + chance.expovariate(2 / seconds)),
                number=chance.randrange(1 << 30),
            )
        )
    return sorted(troubles, key=lambda trouble: trouble.begins)


async def begin(trouble: Trouble, world: World) -> None:
    """Let it strike."""
    KINDS[trouble.what](trouble, world)
    if trouble.what == "a member joins":
        with suppress(RemotingError):  # it cannot start while nobody answers, and says so
            await world.load.add_reader(f"r{trouble.number}")
    elif trouble.what == "a member leaves":
        await world.load.remove_reader()


def end(trouble: Trouble, world: World) -> None:
    """Undo it, as far as it can be undone; what another trouble still does there ends with it."""
    if trouble.what == "the name server is away":
        _back(world, NAME_SERVER)
    elif trouble.what.startswith("the broker dies"):
        _back(world, trouble.where)
    else:
        proxy = world.proxies[trouble.where]
        torn = proxy.drop_replies or proxy.drop_requests
        proxy.heal()
        if torn:  # these streams lack bytes somewhere
            proxy.reset()


def _away(world: World, name: str, *, in_route: bool = True) -> None:
    world.cluster.stop(name, in_route=in_route)
    world.away[name] += 1


def _back(world: World, name: str) -> None:
    world.away[name] -= 1
    if not world.away[name]:
        world.cluster.restart(name)


def _dies(trouble: Trouble, world: World) -> None:
    _away(world, trouble.where, in_route="unnoticed" in trouble.what)


def _name_server_away(_: Trouble, world: World) -> None:
    _away(world, NAME_SERVER)


def _drops_answers(trouble: Trouble, world: World) -> None:
    world.proxies[trouble.where].drop_replies = True


def _drops_requests(trouble: Trouble, world: World) -> None:
    world.proxies[trouble.where].drop_requests = True


def _cuts(trouble: Trouble, world: World) -> None:
    world.proxies[trouble.where].cut_after = _CUTS[trouble.number % len(_CUTS)]
    world.proxies[trouble.where].reset()


def _slow(trouble: Trouble, world: World) -> None:
    world.proxies[trouble.where].delay = 0.01 + trouble.number % 500 / 1000


def _pauses(trouble: Trouble, world: World) -> None:
    world.proxies[trouble.where].pause()


def _hangs_up(trouble: Trouble, world: World) -> None:
    world.proxies[trouble.where].reset()


def _refuses(trouble: Trouble, world: World) -> None:
    code = _REFUSALS[trouble.number % len(_REFUSALS)]
    world.cluster.fault(code=_SEND, broker=trouble.where, times=1 + trouble.number % 7, answer=code)


def _swallows(trouble: Trouble, world: World) -> None:
    answer = (Reaction.SWALLOW, Reaction.SILENCE, Reaction.DISCONNECT)[trouble.number % 3]
    world.cluster.fault(broker=trouble.where, times=1 + trouble.number % 5, answer=answer)


def _more_queues(trouble: Trouble, world: World) -> None:
    world.queues += 1 + trouble.number % 2
    world.cluster.create_topic(world.topic, queues=world.queues)


def _members(_: Trouble, __: World) -> None:
    """See :func:`begin`."""


KINDS = {
    "the broker dies unnoticed:": _dies,
    "the broker dies and leaves the route:": _dies,
    "the name server is away": _name_server_away,
    "answers are dropped by": _drops_answers,
    "requests are dropped before": _drops_requests,
    "answers are cut by": _cuts,
    "the link is slow to": _slow,
    "the link stands still to": _pauses,
    "connections are reset to": _hangs_up,
    "sends are refused by": _refuses,
    "requests are lost by": _swallows,
    "there are more queues": _more_queues,
    "a member joins": _members,
    "a member leaves": _members,
}
