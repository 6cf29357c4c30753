"""One run by its seed: load, troubles, judgement."""

import asyncio
import random
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from io import StringIO

from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.testing import FakeCluster
from tests.support.skipping_loop import run_skipping
from tools.measure.faults.checker import check, longest_unowned
from tools.measure.faults.fault_proxy import FaultProxy
from tools.measure.faults.figures import at_most, general, unmet
from tools.measure.faults.history import History
from tools.measure.faults.load import Load, LoadConfig
from tools.measure.sim.trouble import BROKERS, Trouble, World, begin, end, plan

_SECONDS = 4.0
_SEND_TIMEOUT = 1.5
_UNOWNED_SECONDS = 2.0  # a round of rebalancing, and a second
_UNTIL_BROKERS_FORGET = 120.0  # seconds
_TOPIC = "simulated"
_CLIENT = {"poll_name_server_interval": 0.5, "heartbeat_broker_interval": 0.5, "request_timeout": 1.0}
_READER = {
    "delay_after_error": 0.1,
    "pull_timeout": 1.5,
    "long_poll_timeout": 0.5,
    "rebalance_interval": 1.0,
}


@dataclass
class Result:
    """Result of a run; ``found`` is empty if the engine did as it must."""

    seed: int
    troubles: list[Trouble]
    found: list[str] = field(default_factory=list)
    history: str = ""
    """The history's lines; the same for the same seed."""


def simulate(seed: int) -> Result:
    """Run once. Two runs of one seed in processes of the same ``PYTHONHASHSEED`` are the same."""
    chance = random.Random(seed)
    result = Result(seed, plan(chance, _SECONDS))
    random.seed(chance.getrandbits(64))  # the engine's own: first queues, waits between tries
    lines = StringIO()
    try:
        run_skipping(lambda: _scenario(result, lines))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
        result.found.append(f"{type(error).__name__}: {error}")
    result.history = lines.getvalue()
    return result


async def _scenario(result: Result, lines: StringIO) -> None:
    history = History(lines, SYSTEM_CLOCK.monotonic)
    async with FakeCluster(BROKERS) as cluster, AsyncExitStack() as stack:
        cluster.create_topic(_TOPIC)
        proxies = {name: await stack.enter_async_context(FaultProxy(cluster.addr(name))) for name in BROKERS}
        rules = {proxy.target: proxy.addr for proxy in proxies.values()}
        config = LoadConfig(
            producers=2,
            per_second=25.0,
            body_bytes=100,
            drain_seconds=30.0,
            client={**_CLIENT, "broker_address_map": rules},
            producer={"send_timeout": _SEND_TIMEOUT},
            reader=_READER,
        )
        load = Load(history, config, name_server=cluster.name_server, topic=_TOPIC)
        world = World(cluster, proxies, load, _TOPIC)
        async with asyncio.timeout(120):
            try:
                await load.start()
                await asyncio.gather(*(_strike(trouble, world, history) for trouble in result.troubles))
                await asyncio.sleep(max(0.0, _SECONDS - history.at()))
                await load.stop_sending()
                history.mark("stopped")
                if world.has_left_unseen or world.stood_still == set(BROKERS):  # lists have those who left
                    cluster.advance(_UNTIL_BROKERS_FORGET)
                await load.drain()
            finally:
                await load.close()
    verdict = check(history.events)
    unowned = longest_unowned(history.events, {trouble.where for trouble in result.troubles})
    figures = [
        *general(verdict, send_timeout=_SEND_TIMEOUT, unowned=unowned, unowned_within=_UNOWNED_SECONDS),
        at_most("tasks left", len(asyncio.all_tasks()) - 1, 0),
    ]
    result.found += unmet(figures)


async def _strike(trouble: Trouble, world: World, history: History) -> None:
    await asyncio.sleep(max(0.0, trouble.begins - history.at()))
    history.mark(str(trouble))
    await begin(trouble, world)
    await asyncio.sleep(max(0.0, trouble.ends - history.at()))
    end(trouble, world)
    history.mark(f"over: {trouble.what} {trouble.where}")
