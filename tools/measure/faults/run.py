"""One run of the load with a fault in its middle third: the timeline that most cases share."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from rmqtools import ClientConfig
from rmqtools.aio import Admin
from rmqtools.clock import SYSTEM_CLOCK
from tools.measure.faults.checker import Verdict, check, first_ack, first_read, longest_unowned, marked
from tools.measure.faults.fault_proxy import FaultProxy
from tools.measure.faults.figures import Figure, general
from tools.measure.faults.held import Held
from tools.measure.faults.history import Event, History
from tools.measure.faults.load import Load, LoadConfig
from tools.measure.faults.site import NAME_SERVER, Site

_RECOVERY_SECONDS = 40.0
Step = Callable[["Scene"], Awaitable[None]]


@dataclass(kw_only=True)
class Scene:
    """Objects that the steps of a case use."""

    site: Site
    seconds: float
    """Of the whole load; the fault takes the middle third."""
    history: History
    topic: str
    load: Load
    proxies: dict[str, FaultProxy]
    """In front of the services that the case needs proxied."""
    closing: AsyncExitStack
    """Objects to close at the end, before the clients."""

    @property
    def events(self) -> list[Event]:
        """The history so far."""
        return self.history.events

    async def on_site(self, action: Callable[..., None], *arguments: str, **options: bool) -> None:
        """Do something to a server; it blocks, so a thread does it."""
        await asyncio.to_thread(action, *arguments, **options)


@dataclass(frozen=True)
class Outcome:
    """Result of a case."""

    verdict: Verdict
    figures: list[Figure]


async def under_load(
    site: Site,
    folder: Path,
    *,
    seconds: float,
    config: LoadConfig,
    fault: Step,
    heal: Step,
    judge: Callable[[Scene, Verdict], list[Figure]],
    prepare: Step | None = None,
    recovers: str | None = None,
    proxied: Collection[str] = (),
    sick: Collection[str] = (),
    queues: int = 4,
) -> Outcome:
    """Run the load; ``fault`` at a third of it, ``heal`` at two thirds; then judge the history.

    ``prepare`` runs before the load begins. ``proxied``: services that clients reach through a
    :class:`FaultProxy`. ``recovers`` names a broker: the load goes on until it is used and read again, 40 s
    at most. ``sick``: other brokers that the fault hits.
    """
    topic = f"faults-{uuid.uuid4().hex[:12]}"
    async with Admin(ClientConfig(name_server=site.name_server)) as admin:
        await admin.create_topic(topic, read_queue_nums=queues, write_queue_nums=queues)
    before = Held.now()
    with History((folder / f"{topic}.jsonl").open("w"), SYSTEM_CLOCK.monotonic) as history:
        async with AsyncExitStack() as stack:
            proxies = {
                name: await stack.enter_async_context(FaultProxy(_address(site, name))) for name in proxied
            }
            name_server = proxies[NAME_SERVER].addr if NAME_SERVER in proxies else site.name_server
            load = Load(history, _through(proxies, config), name_server=name_server, topic=topic)
            scene = Scene(
                site=site,
                seconds=seconds,
                history=history,
                topic=topic,
                load=load,
                proxies=proxies,
                closing=stack,
            )
            stack.push_async_callback(load.close)
            if prepare is not None:
                await prepare(scene)
            await load.start()
            began = history.mark("load")
            await asyncio.sleep(seconds / 3)
            history.mark("fault")
            await fault(scene)
            await asyncio.sleep(max(0.0, began + 2 * seconds / 3 - history.at()))
            history.mark("heal")
            await heal(scene)
            history.mark("healed")
            await asyncio.sleep(seconds / 3)
            if recovers is not None:
                await _recovered(history, recovers)
            await load.stop_sending()
            history.mark("stopped")
            await load.drain()
    held = await Held.settled(before)
    verdict = check(history.events)
    timeout = float(config.producer.get("send_timeout", 3.0))
    unowned = longest_unowned(history.events, {*sick, *proxied, recovers or ""})
    every = general(verdict, send_timeout=timeout, unowned=unowned)
    figures = every + judge(scene, verdict) + held.figures_since(before)
    return Outcome(verdict, figures)


async def _recovered(history: History, broker_name: str) -> None:
    """Wait until a broker is used and read again, or too long."""
    since = marked(history.events, "heal")
    deadline = history.at() + _RECOVERY_SECONDS
    while history.at() < deadline:
        acked = first_ack(history.events, since, broker_name)
        if acked is not None and first_read(history.events, since, broker_name) is not None:
            return
        await asyncio.sleep(0.5)


def _address(site: Site, service: str) -> str:
    return site.name_server if service == NAME_SERVER else site.broker_addrs[service]


def _through(proxies: Mapping[str, FaultProxy], config: LoadConfig) -> LoadConfig:
    """Run the load with clients that reach brokers through their proxies."""
    rules = {proxy.target: proxy.addr for name, proxy in proxies.items() if name != NAME_SERVER}
    return replace(config, client={**config.client, "broker_address_map": rules}) if rules else config
