"""Heartbeats as proxies 5.5.0 write them to their topic: tests/integration/test_proxy.py has a real one."""

import json

from rmqtools import ClientConfig, Message, Producer, ProducerConfig
from rmqtools.aio import Admin
from rmqtools.model.group_view import ProxiedMember
from rmqtools.model.names import HEARTBEAT_SYNCER_TOPIC
from rmqtools.testing import FakeCluster, RequestCode, ResponseCode


def heartbeat(client_id: str, at: int, kind: str = "REGISTER", group: str = "g") -> bytes:
    known = {"clientId": client_id, "group": group, "heartbeatType": kind, "lastUpdateTimestamp": at}
    return json.dumps(known | {"localProxyId": "10.0.0.5%8080%8081"}).encode()


async def proxied(cluster: FakeCluster, *bodies: bytes) -> tuple[ProxiedMember, ...]:
    if bodies:
        cluster.create_topic(HEARTBEAT_SYNCER_TOPIC, queues=1)
        with Producer(ProducerConfig(name_server=cluster.name_server)) as producer:
            for body in bodies:
                producer.send(Message(HEARTBEAT_SYNCER_TOPIC, body))
    async with Admin(ClientConfig(name_server=cluster.name_server)) as admin:
        return (await admin.fetch_group("g")).proxied


async def test_members_are_those_whose_last_heartbeat_registers_them_in_the_group(cluster):
    found = await proxied(
        cluster,
        heartbeat("gone@1", 5),
        heartbeat("there@1", 5),
        heartbeat("elsewhere@1", 5, group="other"),
        b"no heartbeat",
        heartbeat("gone@1", 7, "UNREGISTER"),
        heartbeat("gone@1", 6),  # written late
    )

    assert found == (ProxiedMember(client_id="there@1", proxy="10.0.0.5:8080"),)


async def test_without_proxies_there_are_none(cluster):
    assert await proxied(cluster) == ()


async def test_a_topic_that_may_not_be_read_is_a_warning_and_the_rest_of_the_group_is_shown(cluster, caplog):
    cluster.fault(code=RequestCode.PULL_MESSAGE, times=None, answer=ResponseCode.NO_PERMISSION)

    assert await proxied(cluster, heartbeat("there@1", 5)) == ()
    assert "proxied_members_unknown" in caplog.text
