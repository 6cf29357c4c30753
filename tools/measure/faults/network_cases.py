"""Answers that are lost, cut or slow, between clients and a broker."""

import asyncio

from tools.measure.faults.bench import Bench
from tools.measure.faults.broker_cases import SILENCE_TIMEOUT, judge_silence
from tools.measure.faults.checker import Verdict, first_ack, marked
from tools.measure.faults.figures import Figure, at_most, within
from tools.measure.faults.run import Outcome, Scene

_CUTS = (4, 30, 3000)  # in the length, in the header, in the body of an answer
_DELAY, _BYTES_PER_SECOND = 0.2, 20_000.0


async def heal_proxies(scene: Scene) -> None:
    """End what the proxies do."""
    for proxy in scene.proxies.values():
        proxy.heal()


async def dropped_answers(bench: Bench) -> Outcome:
    """Drop all answers: requests reach the broker, and nothing comes back."""

    async def drop(scene: Scene) -> None:
        scene.proxies["broker-b"].drop_replies = True

    async def heal(scene: Scene) -> None:
        await heal_proxies(scene)
        scene.proxies["broker-b"].reset()  # answers were cut anywhere: these streams cannot go on

    return await bench.under_load(
        fault=drop,
        heal=heal,
        judge=judge_silence,
        recovers="broker-b",
        proxied=["broker-b"],
        producer={"send_timeout": SILENCE_TIMEOUT},
    )


async def cut_answers(bench: Bench) -> Outcome:
    """Reset connections in the middle of an answer."""

    async def cut(scene: Scene) -> None:
        for size in _CUTS:
            scene.proxies["broker-b"].cut_after = size
            scene.proxies["broker-b"].reset()
            await asyncio.sleep(scene.seconds / 3 / len(_CUTS))

    def judge(scene: Scene, verdict: Verdict) -> list[Figure]:
        heal = marked(scene.events, "heal")
        return [
            at_most("read twice", verdict.redelivered, 0),
            within("used again", first_ack(scene.events, heal, "broker-b"), 1.0),
        ]

    return await bench.under_load(fault=cut, heal=heal_proxies, judge=judge, proxied=["broker-b"])


async def slow_link(bench: Bench) -> Outcome:
    """200 ms later and 20 kB a second, each way, on each connection to one broker."""
    connects: list[int] = []

    async def slow(scene: Scene) -> None:
        proxy = scene.proxies["broker-b"]
        proxy.delay, proxy.bytes_per_second = _DELAY, _BYTES_PER_SECOND
        connects.append(proxy.connects)

    async def heal(scene: Scene) -> None:
        connects.append(scene.proxies["broker-b"].connects)
        await heal_proxies(scene)

    def judge(_: Scene, verdict: Verdict) -> list[Figure]:
        return [
            at_most("failed sends", verdict.refused + verdict.unknown, 0),
            at_most("attempts that timed out", verdict.unknown_attempts, 0),
            at_most("connections given up", connects[1] - connects[0], 0),
        ]

    return await bench.under_load(
        fault=slow,
        heal=heal,
        judge=judge,
        proxied=["broker-b"],
        body_bytes=2000,
        producer={"send_timeout": 10.0},
    )
