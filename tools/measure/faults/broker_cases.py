"""Brokers that are killed, frozen, or all away at once."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rmqtools import ClientConfig
from rmqtools.aio import Admin
from rmqtools.errors import RocketMQError
from tools.measure.faults.bench import Bench
from tools.measure.faults.checker import (
    Verdict,
    answers_in,
    attempts_on,
    first_ack,
    first_read,
    longest_gap,
    marked,
)
from tools.measure.faults.figures import Figure, at_most, within
from tools.measure.faults.history import Answered
from tools.measure.faults.run import Outcome, Scene

_BACK_SECONDS = 35.0  # a route poll is every 30 s
_FIRST_ACK_SECONDS = 5.0
_WAITED_SECONDS = 1.0  # an attempt that took so long had no answer; a busy broker refuses sooner
SILENCE_TIMEOUT = 3.0  # of a send; the default
_CONNECTS_PER_SECOND = 20


async def killed_master(bench: Bench) -> Outcome:
    """One master of three is killed, and started again."""

    async def kill(scene: Scene) -> None:
        await scene.on_site(scene.site.kill, "broker-b")

    async def start(scene: Scene) -> None:
        await scene.on_site(scene.site.start, "broker-b")

    def judge(scene: Scene, verdict: Verdict) -> list[Figure]:
        fault, heal = marked(scene.events, "fault"), marked(scene.events, "heal")
        healed = marked(scene.events, "healed")  # it answers and is registered
        answers = answers_in(scene.events, fault, heal)
        return [
            at_most("failed sends", verdict.refused + verdict.unknown, 0),
            at_most("attempts on the dead broker again", _failed_again(answers), _allowed_again(answers)),
            within("longest gap between acks", longest_gap(scene.events, fault, heal), 1.0),
            within("used again", first_ack(scene.events, healed, "broker-b"), _BACK_SECONDS),
            within("read again", first_read(scene.events, healed, "broker-b"), _BACK_SECONDS),
        ]

    return await bench.under_load(fault=kill, heal=start, judge=judge, recovers="broker-b")


def _failed_again(answers: Sequence[Answered]) -> int:
    """Count attempts on the dead broker of producers that had one failed there already."""
    failed = Counter(
        answer.message.producer
        for answer in answers
        for attempt in answer.attempts
        if attempt.broker_name == "broker-b" and attempt.outcome != "stored"
    )
    return sum(count - 1 for count in failed.values())


def _allowed_again(answers: Sequence[Answered]) -> float:
    """One of a hundred sends; two of each producer where a slow machine sends little in the time."""
    producers = {answer.message.producer for answer in answers}
    return max(len(answers) / 100, 2.0 * len(producers))


async def paused_master(bench: Bench) -> Outcome:
    """One master of three stands still: its connections stay open, and the route keeps it."""

    async def pause(scene: Scene) -> None:
        await scene.on_site(scene.site.pause, "broker-b")

    async def unpause(scene: Scene) -> None:
        await scene.on_site(scene.site.unpause, "broker-b")

    return await bench.under_load(
        fault=pause,
        heal=unpause,
        judge=judge_silence,
        recovers="broker-b",
        producer={"send_timeout": SILENCE_TIMEOUT},
    )


def judge_silence(scene: Scene, verdict: Verdict) -> list[Figure]:
    """Judge the figures where broker-b takes requests and answers none."""
    fault, heal = marked(scene.events, "fault"), marked(scene.events, "heal")
    tried = attempts_on(scene.events, "broker-b", fault, heal + SILENCE_TIMEOUT)
    misnamed = [a for a in tried if a.outcome not in ("stored", "unknown") and a.seconds >= _WAITED_SECONDS]
    ids = scene.load.unique_ids.values()
    return [
        at_most("unanswered attempts called failed", len(misnamed), 0),
        within("longest send against its timeout", verdict.longest_send, SILENCE_TIMEOUT + 0.2),
        at_most("copies left by unique key", sum(len(keys) - 1 for keys in ids), 0),
        within("used again", first_ack(scene.events, heal, "broker-b"), _BACK_SECONDS),
        within("read again", first_read(scene.events, heal, "broker-b"), _BACK_SECONDS),
    ]


async def all_brokers_down(bench: Bench) -> Outcome:
    """All masters are killed, and started again."""
    connects: dict[str, Counter[int]] = defaultdict(Counter)
    counted: dict[str, Counter[int]] = {}
    clients = 6

    async def kill(scene: Scene) -> None:
        scene.closing.enter_context(_counted_connects(connects))
        for broker in scene.site.broker_addrs:
            await scene.on_site(scene.site.kill, broker)

    async def start(scene: Scene) -> None:
        counted.update({addr: connects[addr] for addr in scene.site.broker_addrs.values()})
        connects.clear()
        for broker in scene.site.broker_addrs:
            await scene.on_site(scene.site.start, broker, wait=False)
        await _first_in_route(scene)
        scene.history.mark("in route")
        await scene.on_site(scene.site.restore)

    def judge(scene: Scene, _: Verdict) -> list[Figure]:
        back = marked(scene.events, "in route")
        busiest = max(max(per.values(), default=0) for per in counted.values())
        return [
            at_most("connects to one broker a second and client", busiest / clients, _CONNECTS_PER_SECOND),
            within(
                "first ack after a broker is in the route", first_ack(scene.events, back), _FIRST_ACK_SECONDS
            ),
        ]

    return await bench.under_load(fault=kill, heal=start, judge=judge, sick=bench.site.broker_addrs)


@contextmanager
def _counted_connects(connects: dict[str, Counter[int]]) -> Iterator[None]:
    """Count the connections that clients of this loop begin, by address and second."""
    loop: Any = asyncio.get_running_loop()
    sock_connect = loop.sock_connect

    def counting(sock: Any, address: Any) -> Any:
        connects["{}:{}".format(*address)][int(loop.time())] += 1
        return sock_connect(sock, address)

    loop.sock_connect = counting
    try:
        yield
    finally:
        loop.sock_connect = sock_connect


async def _first_in_route(scene: Scene) -> None:
    """Wait until the name server has the topic again."""
    async with Admin(ClientConfig(name_server=scene.site.name_server)) as admin, asyncio.timeout(60):
        while True:
            try:
                await admin.fetch_route(scene.topic)
            except RocketMQError:
                await asyncio.sleep(0.05)
            else:
                return
