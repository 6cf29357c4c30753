"""Trace records of our consumers beside those of the Java client, and in the official mqadmin."""

import uuid
from functools import partial

import pytest

from rmqtools import Message
from tests.support.cluster_scene import wait_until
from tests.support.java_consumer import JavaConsumer, PythonConsumer
from tests.support.mqadmin import Mqadmin
from tests.support.reading import read_all

pytestmark = pytest.mark.broker

MESSAGES = 12
SEED = ("--seed", "3")  # of these messages some raise, some fail and most succeed
VARYING = {  # fields that differ from call to call, and what stands for them
    "SubBefore": {1: int, 3: "group", 4: "request id"},
    "SubAfter": {1: "request id", 3: int, 7: int, 8: "group"},
}


def comparable(record: str, group: str) -> tuple[str, ...]:
    """The fields of a record; those that differ from call to call are checked and replaced."""
    fields = record.split("\x01")
    for index, kind in VARYING[fields[0]].items():
        if kind == "group":
            assert fields[index] == group
        elif kind == "request id":
            assert len(bytes.fromhex(fields[index])) in (16, 28)  # of an IPv4 or IPv6 address
        else:
            int(fields[index])
        fields[index] = str(kind)
    return tuple(fields)


def all_consumed(member: JavaConsumer) -> bool:
    return sum(not row["failed"] for row in member.messages) == MESSAGES


def group_records(read, traces: str, group: str) -> list[str]:
    """The records of a group; every kind has the name of its group."""
    bodies = [message.body.decode() for message in read(traces)]
    return [record for body in bodies for record in body.split("\x02") if f"\x01{group}" in record]


def await_records(read, traces: str, group: str, count: int) -> None:
    wait_until(lambda: len(group_records(read, traces, group)) == count)


@pytest.fixture
def read(client, admin):
    return partial(read_all, client, admin)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param((), id="concurrently", marks=pytest.mark.slow),
        pytest.param(("--orderly",), id="in-order", marks=pytest.mark.slow),
    ],
)
def test_records_have_the_fields_of_a_java_consumer_s(
    java_peer, local_cluster, producer, read, make_topic, options
):
    topic, traces = make_topic(queues=1), make_topic(queues=1)
    keys = [["a", "b"], "k", ()]
    for number in range(MESSAGES):
        producer.send(Message(topic, b"%d" % number, keys=keys[number % 3], tags="t"))
    records: dict[str, list[tuple[str, ...]]] = {}
    for kind in (partial(JavaConsumer, java_peer), PythonConsumer):
        group = f"group-{uuid.uuid4().hex[:12]}"
        arguments = (local_cluster.name_server, group, topic, "--print", *SEED, "--trace", traces, *options)
        with kind(*arguments) as member:
            wait_until(partial(all_consumed, member))
            member.stop()
        await_records(read, traces, group, 2 * len(member.messages))
        found = sorted(comparable(record, group) for record in group_records(read, traces, group))
        records[type(member).__name__] = found

    assert records["PythonConsumer"] == records["JavaConsumer"]
    results = {(fields[4], fields[6]) for fields in records["PythonConsumer"] if fields[0] == "SubAfter"}
    assert results == {("true", "0"), ("false", "2"), ("false", "4")}


@pytest.mark.slow  # the records are compared with Java's above
def test_mqadmin_shows_who_consumed_a_message(java_peer, local_cluster, producer, make_topic):
    topic, traces, group = make_topic(queues=1), make_topic(queues=1), f"group-{uuid.uuid4().hex[:12]}"
    sent = producer.send(Message(topic, b"body"))
    arguments = (local_cluster.name_server, group, topic, "--print", "--fail", "1", "--trace", traces)
    with PythonConsumer(*arguments) as member:
        member.await_messages(2)
        member.stop()
    mqadmin = Mqadmin(java_peer, local_cluster.name_server)

    def results() -> list[tuple[str, str]]:
        """What mqadmin says; on a busy machine it may give up before it has an answer."""
        shown = mqadmin.run("queryMsgTraceById", "-i", sent.msg_id, "-t", traces)
        lines = [line.split() for line in shown.splitlines() if line.startswith("Sub ")]
        return sorted((line[1], line[-1]) for line in lines)

    wait_until(lambda: results() == [(group, "failed"), (group, "success")])
