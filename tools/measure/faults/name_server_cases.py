"""Name servers that are away."""

import uuid

from rmqtools import ClientConfig, Message, ProducerConfig
from rmqtools.aio import Admin, Producer
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.errors import RocketMQError
from tools.measure.faults.bench import Bench
from tools.measure.faults.checker import Verdict
from tools.measure.faults.figures import Figure, at_most, holds, within
from tools.measure.faults.run import Outcome, Scene
from tools.measure.faults.site import NAME_SERVER


async def name_server_away(bench: Bench) -> Outcome:
    """Kill and start the name server; a client that knows a second one finds new topics meanwhile."""
    notes: dict[str, tuple[str, float]] = {}

    async def kill(scene: Scene) -> None:
        proxy = scene.proxies[NAME_SERVER]
        proxy.refuse = True
        proxy.reset()
        notes["second"] = await _look_up(f"{proxy.addr};{scene.site.name_server}", scene.topic)
        proxy.refuse = False
        await scene.on_site(scene.site.kill, NAME_SERVER)
        notes["none"] = await _look_up(scene.site.name_server, scene.topic)

    async def start(scene: Scene) -> None:
        await scene.on_site(scene.site.start, NAME_SERVER)

    async def send_to_new_topic(scene: Scene) -> None:
        await start(scene)
        notes["after"] = await _new_topic(scene)

    def judge(_: Scene, verdict: Verdict) -> list[Figure]:
        return [
            at_most("failed sends", verdict.refused + verdict.unknown, 0),
            holds("one of two name servers away: found", notes["second"][0] == "found"),
            holds("none there: the error names it", "cannot connect" in notes["none"][0], notes["none"][0]),
            within("and comes in", notes["none"][1], 3.5),
            holds("afterwards a new topic is sent to", notes["after"][0] == "found", notes["after"][0]),
        ]

    return await bench.under_load(fault=kill, heal=send_to_new_topic, judge=judge, proxied=[NAME_SERVER])


async def _look_up(name_server: str, topic: str) -> tuple[str, float]:
    """Look a topic up with a new client: ``found`` or the error, and the seconds it took."""
    began = SYSTEM_CLOCK.monotonic()
    try:
        async with Producer(ProducerConfig(name_server=name_server)) as producer:
            await producer.fetch_publish_queues(topic)
    except RocketMQError as error:
        return f"{type(error).__name__}: {error}", SYSTEM_CLOCK.monotonic() - began
    return "found", SYSTEM_CLOCK.monotonic() - began


async def _new_topic(scene: Scene) -> tuple[str, float]:
    config = ClientConfig(name_server=scene.site.name_server)
    topic = f"faults-new-{uuid.uuid4().hex[:8]}"
    async with Admin(config) as admin:
        await admin.create_topic(topic, read_queue_nums=1, write_queue_nums=1)
    began = SYSTEM_CLOCK.monotonic()
    try:
        await scene.load.producer.send(Message(topic, b"new"))
    except RocketMQError as error:
        return f"{type(error).__name__}: {error}", SYSTEM_CLOCK.monotonic() - began
    return "found", SYSTEM_CLOCK.monotonic() - began
