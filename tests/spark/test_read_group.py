"""Option ``readGroup``: the group that brokers authorise and that reads leave as it is."""

import json

import pytest

from rmqtools import Admin, ClientConfig, Message, Producer, ProducerConfig
from rmqtools.engine.connection.client import ClientCore
from rmqtools.model.codes import RequestCode
from rmqtools.protocol.wire.command import RemotingCommand
from rmqtools.sync.loop import Bridge
from tests.spark.conftest import ADMIN
from tests.spark.streams import error_of
from tests.support.patience import PATIENCE, PATIENT_REQUEST

TOPIC, GROUP, COUNT, COMMITTED = "audited", "analysts", 5, 2
READER = {"accessKey": "reader", "secretKey": "readers-key-1"}
MAY = {f"Topic:{TOPIC}": ["Sub", "Get"], f"Group:{GROUP}": ["Sub"]}


@pytest.fixture(scope="module")
def guarded(acl_cluster):
    """The cluster and its administrator; user reader may read topic audited as group analysts."""
    config = ProducerConfig(
        name_server=acl_cluster.name_server,
        send_timeout=PATIENT_REQUEST,
        request_timeout=PATIENT_REQUEST,
        **ADMIN,
    )
    with Admin(config) as admin, Producer(config) as producer:
        admin.create_topic(TOPIC, read_queue_nums=1, write_queue_nums=1)
        admin.create_group(GROUP)
        (queue,) = admin.fetch_publish_queues(TOPIC)
        for number in range(COUNT):
            producer.send(Message(TOPIC, b"%d" % number))
        admin.await_readable({queue: COUNT}, timeout=PATIENCE)
        admin.update_consumer_offset(GROUP, queue, COMMITTED)
        Bridge().run(lambda: create_reader(acl_cluster))
        yield acl_cluster, admin


async def create_reader(cluster):
    client = ClientCore(ClientConfig(name_server=cluster.name_server, **ADMIN))
    user = {
        "username": READER["accessKey"],
        "password": READER["secretKey"],
        "userType": "Normal",
        "userStatus": "enable",
    }
    entries = [
        {"resource": resource, "actions": actions, "decision": "Allow"} for resource, actions in MAY.items()
    ]
    subject = f"User:{READER['accessKey']}"
    acl = {"subject": subject, "policies": [{"policyType": "Custom", "entries": entries}]}
    for code, fields, body in (
        (RequestCode.AUTH_CREATE_USER, {"username": READER["accessKey"]}, user),
        (RequestCode.AUTH_CREATE_ACL, {"subject": subject}, acl),
    ):
        command = RemotingCommand(code, ext_fields=fields, body=json.dumps(body).encode())
        (addr,) = cluster.broker_addrs.values()
        await client.remoting.invoke_ok(addr, command)
    await client.close()


def test_a_user_reads_by_the_permission_of_the_read_group_whose_offsets_stay(spark, guarded):
    cluster, admin = guarded
    options = {"nameServer": cluster.name_server, "topic": TOPIC, **READER}
    load = spark.read.format("rocketmq").options(**options).load

    refused = error_of(lambda: load().count())
    rows = load(readGroup=GROUP).count()

    assert "Group:TOOLS_CONSUMER" in refused
    assert rows == COUNT
    assert list(admin.fetch_consumer_offsets(GROUP, TOPIC).values()) == [COMMITTED]
