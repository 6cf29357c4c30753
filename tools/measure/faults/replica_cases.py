"""A master with a slave: the slave is away, or the master is."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from rmqtools import ClientConfig, MessageQueue, QueueRange
from rmqtools.aio import Admin, Client
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.cluster import LocalCluster
from rmqtools.errors import BrokerError
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.protocol.wire.command import RemotingCommand
from tools.measure.faults.bench import Bench
from tools.measure.faults.checker import Verdict, answers_in, marked
from tools.measure.faults.figures import Figure, at_most, holds, within
from tools.measure.faults.history import Answered
from tools.measure.faults.run import Outcome, Scene
from tools.measure.faults.site import LocalSite

MASTER, SLAVE = "broker-a", "broker-a-slave-1"
_BOTH_STORE = {"brokerRole": "SYNC_MASTER", "inSyncReplicas": "2", "slaveTimeout": "1500"}
_SLAVE_SECONDS = 180.0
_NOT_REPLICATED = ("FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE")


@asynccontextmanager
async def _on_replica(bench: Bench) -> AsyncIterator[Bench]:
    """Run the same bench on a master with a slave."""
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        cluster = LocalCluster(slaves=1, directory=Path(folder), broker_settings=_BOTH_STORE)
        await asyncio.to_thread(cluster.start)
        try:
            yield replace(bench, site=LocalSite(cluster))
        finally:
            await asyncio.to_thread(cluster.stop)


async def slave_away(bench: Bench) -> Outcome:
    """Two brokers have to store each message, and the slave is killed."""

    async def kill(scene: Scene) -> None:
        await scene.on_site(scene.site.kill, SLAVE)

    async def start(scene: Scene) -> None:
        await scene.on_site(scene.site.start, SLAVE)

    def judge(scene: Scene, verdict: Verdict) -> list[Figure]:
        fault, heal = marked(scene.events, "fault") + 1.0, marked(scene.events, "heal")
        alone = answers_in(scene.events, fault, heal)
        said = {answer.status if answer.outcome == "stored" else answer.outcome for answer in alone}
        last = answers_in(scene.events, heal, marked(scene.events, "stopped"))[-1]
        return [
            holds(
                "not replicated is a status of its own", said <= set(_NOT_REPLICATED), " ".join(sorted(said))
            ),
            at_most("failed sends", verdict.refused + verdict.unknown, 0),
            at_most("copies", verdict.copies, 0),
            holds("afterwards", last.status == "SEND_OK", last.status),
        ]

    async with _on_replica(bench) as replica:
        # a broker waits for its slave longer than the first attempt of a send of 3 s would
        return await replica.under_load(fault=kill, heal=start, judge=judge, producer={"send_timeout": 10.0})


async def master_away(bench: Bench) -> Outcome:
    """Kill the master: the slave is read, and nothing is sent to it."""
    took: list[float] = []
    found: list[int] = []
    acked: list[int] = []

    async def kill(scene: Scene) -> None:
        await scene.on_site(scene.site.kill, MASTER)
        began = SYSTEM_CLOCK.monotonic()
        ends = _acked_ends(scene)
        acked.append(sum(ends.values()))
        found.append(await _read_everything(scene, ends))
        took.append(SYSTEM_CLOCK.monotonic() - began)

    async def start(scene: Scene) -> None:
        await scene.on_site(scene.site.start, MASTER)

    def judge(scene: Scene, _: Verdict) -> list[Figure]:
        answers = answers_in(scene.events, marked(scene.events, "fault") + 1.0, marked(scene.events, "heal"))
        tried = [attempt for answer in answers for attempt in answer.attempts]
        return [
            holds(
                "the slave has all that was acknowledged", found[0] == acked[0], f"{found[0]} of {acked[0]}"
            ),
            within("all of it is read", took[0], 5.0),
            at_most("sends that the slave refused", sum(a.outcome == "refused" for a in tried), 0),
        ]

    async with _on_replica(bench) as replica:
        return await replica.under_load(
            prepare=_await_topic_on_slave, fault=kill, heal=start, judge=judge, sick=[MASTER]
        )


async def _await_topic_on_slave(scene: Scene) -> None:
    """Wait until the slave knows the topic: it copies its master's topics once a minute."""
    command = RemotingCommand(code=RequestCode.GET_TOPIC_CONFIG, ext_fields={"topic": scene.topic})
    async with Client(ClientConfig(name_server=scene.site.name_server)) as client, Admin(client) as admin:
        table = (await admin.fetch_cluster_info()).broker_addr_table
        slave = table[MASTER].broker_addrs[1]
        async with asyncio.timeout(_SLAVE_SECONDS):
            while True:
                try:
                    await client._client.remoting.invoke_ok(slave, command)
                except BrokerError as error:
                    if error.code != ResponseCode.TOPIC_NOT_EXIST:
                        raise
                    await asyncio.sleep(0.5)
                else:
                    return


def _acked_ends(scene: Scene) -> dict[MessageQueue, int]:
    """Return the offset behind the last acknowledged message of every queue."""
    ends: dict[MessageQueue, int] = {}
    for event in scene.events:
        if isinstance(event, Answered) and event.place is not None:
            queue = MessageQueue(scene.topic, event.place.broker_name, event.place.queue_id)
            ends[queue] = max(ends.get(queue, 0), event.place.queue_offset + 1)
    return ends


async def _read_everything(scene: Scene, ends: Mapping[MessageQueue, int]) -> int:
    """Read every queue with a new client, from its first offset to the last one acknowledged."""
    found = 0
    async with Client(ClientConfig(name_server=scene.site.name_server)) as client:
        for queue, end in ends.items():
            async for messages in client.read_messages(QueueRange(queue, 0, end)):
                found += len(messages)
    return found
