"""Brokers and topics that may not be written to: only the client can honour what the route says."""

import asyncio

from rmqtools import ClientConfig, Message, Perm, ProducerConfig, QueueRange
from rmqtools.aio import Admin, Client, Producer
from rmqtools.errors import RocketMQError
from rmqtools.model.codes import RequestCode
from rmqtools.protocol.wire.command import RemotingCommand
from tools.measure.faults.bench import Bench
from tools.measure.faults.checker import Verdict, attempts_on, first_ack, marked
from tools.measure.faults.figures import Figure, at_most, holds, within
from tools.measure.faults.run import Outcome, Scene

_POLL_SECONDS = 2.0  # of the routes: a fault lasts a third of the load
_GRACE = 1.0  # for a send that has chosen its queue


async def no_write_permission(bench: Bench) -> Outcome:
    """Take one broker's write permission (mqadmin wipeWritePerm), and give it back."""
    read: list[int] = []
    queues: list[set[str]] = []

    async def wipe(scene: Scene) -> None:
        await _tell_name_server(scene, RequestCode.WIPE_WRITE_PERM_OF_BROKER)
        await asyncio.sleep(_POLL_SECONDS)
        async with Client(ClientConfig(name_server=scene.site.name_server)) as client, Admin(client) as admin:
            queues.append({queue.broker_name for queue in await admin.fetch_publish_queues(scene.topic)})
            read.append(await _read_broker(client, admin, scene.topic))

    async def give_back(scene: Scene) -> None:
        await _tell_name_server(scene, RequestCode.ADD_WRITE_PERM_OF_BROKER)

    def judge(scene: Scene, verdict: Verdict) -> list[Figure]:
        fault, heal = marked(scene.events, "fault"), marked(scene.events, "heal")
        after = attempts_on(scene.events, "broker-b", fault + _POLL_SECONDS + _GRACE, heal)
        return [
            at_most("failed sends", verdict.refused + verdict.unknown, 0),
            at_most("sends to it after one route refresh", len(after), 0),
            holds("a new client leaves it out", "broker-b" not in queues[0]),
            holds("its messages can be read", read[0] > 0, read[0]),
            within("used again", first_ack(scene.events, heal, "broker-b"), _POLL_SECONDS + _GRACE),
        ]

    client = {"poll_name_server_interval": _POLL_SECONDS}
    return await bench.under_load(fault=wipe, heal=give_back, judge=judge, client=client)


async def read_only_topic(bench: Bench) -> Outcome:
    """Make a topic read-only, and writable again. Brokers would take the messages all the same."""
    errors: list[str] = []

    async def forbid(scene: Scene) -> None:
        await _set_perm(scene, Perm.READ)
        try:
            async with Producer(ProducerConfig(name_server=scene.site.name_server)) as producer:
                await producer.send(Message(scene.topic, b"forbidden"))
        except RocketMQError as error:
            errors.append(f"{type(error).__name__}: {error}")

    async def allow(scene: Scene) -> None:
        await _set_perm(scene, Perm.READ | Perm.WRITE)

    def judge(scene: Scene, _: Verdict) -> list[Figure]:
        fault, heal = marked(scene.events, "fault"), marked(scene.events, "heal")
        late = [
            attempt
            for broker in scene.site.broker_addrs
            for attempt in attempts_on(scene.events, broker, fault + _POLL_SECONDS + _GRACE, heal)
        ]
        text = errors[0] if errors else "none: the message was sent"
        return [
            holds("a new client refuses, and names the topic", scene.topic in text, text[:150]),
            holds("and its permission", "PermissionDenied" in text and "perm" in text.lower()),
            at_most("sends after one route refresh", len(late), 0),
            within("sends again", first_ack(scene.events, heal), _POLL_SECONDS + _GRACE),
        ]

    client = {"poll_name_server_interval": _POLL_SECONDS}
    return await bench.under_load(fault=forbid, heal=allow, judge=judge, client=client)


async def _tell_name_server(scene: Scene, code: RequestCode) -> None:
    command = RemotingCommand(code=code, ext_fields={"brokerName": "broker-b"})
    async with Client(ClientConfig(name_server=scene.site.name_server)) as client:
        await client._client.remoting.invoke_ok(scene.site.name_server, command)


async def _read_broker(client: Client, admin: Admin, topic: str) -> int:
    """Return how many messages of broker-b can be read now."""
    found = 0
    for queue in await admin.fetch_subscribe_queues(topic):
        if queue.broker_name == "broker-b":
            range_ = QueueRange(queue, await admin.min_offset(queue), await admin.max_offset(queue))
            async for messages in client.read_messages(range_):
                found += len(messages)
    return found


async def _set_perm(scene: Scene, perm: Perm) -> None:
    async with Admin(ClientConfig(name_server=scene.site.name_server)) as admin:
        await admin.create_topic(scene.topic, read_queue_nums=4, write_queue_nums=4, perm=perm)
