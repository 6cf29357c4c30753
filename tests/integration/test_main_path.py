"""Admin, producer and range reads on a real cluster of two masters."""

import asyncio
import subprocess
import sys
import uuid
from collections import Counter

import pytest

from rmqtools import (
    Admin,
    Client,
    ClientConfig,
    Message,
    Perm,
    Producer,
    ProducerConfig,
    QueueRange,
    SendStatus,
    aio,
)
from rmqtools.errors import (
    BrokerError,
    DataLossError,
    PermissionDeniedError,
    RemotingConnectError,
    TopicNotFoundError,
)
from rmqtools.protocol.messages.stored import decode_messages
from tests.support.patience import PATIENCE
from tests.support.reading import await_readable, read_queues

pytestmark = pytest.mark.broker


def test_what_is_sent_is_read_back_as_it_was(producer, client, admin, make_topic):
    topic = make_topic()
    message = Message(
        topic, bytes(range(256)) * 40, tags="t", keys=["a", "b"], properties={"имя": "значение"}, flag=9
    )

    result = producer.send(message)
    await_readable(admin, [result])
    (read,) = read_queues(client, admin, topic)[result.queue]

    assert (read.body, read.tags, read.keys, read.flag) == (message.body, "t", "a b", 9)
    assert read.properties["имя"] == "значение"
    assert (read.msg_id, read.offset_msg_id) == (result.msg_id, result.offset_msg_id)
    assert (result.status, result.queue_offset, read.queue_offset) == (SendStatus.SEND_OK, 0, 0)


def test_sends_in_turn_reach_every_queue_of_both_brokers_alike(producer, make_topic):
    topic = make_topic()

    queues = Counter(producer.send(Message(topic, b"x")).queue for _ in range(80))

    assert len(queues) == 8
    assert set(queues.values()) == {10}


def test_send_many_stores_each_message_once_where_its_result_says(producer, client, admin, make_topic):
    topic = make_topic()

    results = producer.send_many([Message(topic, b"%d" % n, keys=[f"k{n}"]) for n in range(5000)])
    await_readable(admin, results)
    stored = {
        (queue, message.queue_offset): (message.body, message.msg_id)
        for queue, messages in read_queues(client, admin, topic).items()
        for message in messages
    }

    assert stored == {(r.queue, r.queue_offset): (b"%d" % n, r.msg_id) for n, r in enumerate(results)}


def test_offsets_by_time_stand_between_what_was_sent_before_and_after(producer, admin, make_topic):
    topic = make_topic(queues=1, broker_names=["broker-a"])
    first = producer.send(Message(topic, b"first"))
    await_readable(admin, [first])

    assert admin.search_offset(first.queue, 0) == 0
    assert admin.search_offset(first.queue, 4_102_444_800_000) == 1
    assert (admin.min_offset(first.queue), admin.max_offset(first.queue)) == (0, 1)


def test_a_topic_is_made_changed_and_deleted(admin, make_topic):
    topic = make_topic(queues=2)
    assert len(admin.fetch_subscribe_queues(topic)) == 4

    admin.create_topic(topic, read_queue_nums=3, write_queue_nums=3)
    assert len(admin.fetch_publish_queues(topic)) == 6

    assert topic in admin.fetch_topic_list()
    admin.delete_topic(topic)
    with pytest.raises(TopicNotFoundError, match=topic):
        admin.fetch_route(topic)


def test_a_missing_topic_is_named(admin, client):
    with pytest.raises(TopicNotFoundError, match="'no-such-topic' has no route"):
        admin.fetch_subscribe_queues("no-such-topic")


def test_a_topic_without_the_read_bit_is_refused_by_the_client_itself(admin, make_topic):
    topic = make_topic(perm=Perm.WRITE)

    with pytest.raises(
        PermissionDeniedError, match=f"'{topic}' may not be read: perm by broker is .*want bit 4"
    ):
        admin.fetch_subscribe_queues(topic)


def test_a_topic_without_the_write_bit_is_refused_by_the_client_itself(producer, make_topic):
    topic = make_topic(perm=Perm.READ)

    with pytest.raises(PermissionDeniedError, match=f"'{topic}' may not be written: .*want bit 2"):
        producer.send(Message(topic, b"x"))


def test_offsets_beyond_the_end_are_data_loss_not_an_empty_answer(producer, local_cluster, make_topic):
    queue = producer.send(Message(make_topic(queues=1), b"x")).queue
    config = ClientConfig(name_server=local_cluster.name_server, request_timeout=2.0)  # it waits so long

    with (
        Client(config) as client,
        pytest.raises(DataLossError, match=r"offsets \[1, 5\) .* the broker has \[0, 1\)"),
    ):
        list(client.read_blocks(QueueRange(queue, 0, 5)))


def test_a_queue_that_does_not_exist_is_the_brokers_no(client, producer, make_topic):
    queue = producer.send(Message(make_topic(queues=1), b"x")).queue
    absent = type(queue)(queue.topic, queue.broker_name, 99)

    with pytest.raises(BrokerError, match=r"queueId\[99\] is illegal"):
        list(client.read_blocks(QueueRange(absent, 0, 1)))


def test_a_message_above_the_brokers_limit_is_refused_with_the_brokers_words(local_cluster, make_topic):
    topic = make_topic()
    config = ProducerConfig(
        name_server=local_cluster.name_server,
        max_message_bytes=8 * 1024 * 1024,
        compression="none",
        max_frame_bytes=2**25,
    )
    with Producer(config) as producer, pytest.raises(Exception, match=r"MESSAGE_ILLEGAL \(13\)"):
        producer.send(Message(topic, bytes(6 * 1024 * 1024)), timeout=10)


def test_a_wrong_name_server_is_named_within_the_timeout():
    with Admin(ClientConfig(name_server="127.0.0.1:1", request_timeout=0.5)) as admin:
        began = admin._admin._client.clock.monotonic()
        with pytest.raises(RemotingConnectError, match=r"cannot connect to 127\.0\.0\.1:1"):
            admin.fetch_topic_list()
        assert admin._admin._client.clock.monotonic() - began < 20  # far below any other deadline


def test_with_one_of_two_name_servers_down_the_other_is_asked(local_cluster, make_topic):
    config = ClientConfig(name_server=f"127.0.0.1:1;{local_cluster.name_server}")
    topic = make_topic()

    for _ in range(2):  # whichever is asked first
        with Admin(config) as admin:
            assert topic in admin.fetch_topic_list()


def test_a_broker_where_a_name_server_is_expected_gives_an_error_that_names_it(local_cluster):
    addr = local_cluster.broker_addrs["broker-a"]
    with Admin(ClientConfig(name_server=addr)) as admin, pytest.raises(BrokerError, match=addr):
        admin.fetch_route("any")


def test_the_asynchronous_face_does_the_same(client_config, make_topic):
    topic = make_topic()

    async def scenario() -> int:
        settings = ProducerConfig(name_server=client_config.name_server, group="tests")
        async with aio.Producer(settings) as producer, aio.Client(client_config) as client:
            result = await producer.send(Message(topic, b"x"))
            blocks = [block async for block in client.read_blocks(QueueRange(result.queue, 0, 1))]
            return sum(len(block) for block in blocks)

    assert asyncio.run(scenario()) == 1


def test_settings_of_a_running_broker_can_be_changed(admin, local_cluster):
    addr = local_cluster.broker_addrs["broker-a"]

    admin.update_broker_config(addr, {"maxTransferCountOnMessageInMemory": "8"})
    admin.update_broker_config(addr, {"maxTransferCountOnMessageInMemory": "32"})

    assert "bootTimestamp" in admin.fetch_broker_runtime_info(addr)


def test_a_read_survives_a_broker_that_returns_fewer_messages_from_one_pull_to_the_next(
    producer, client, admin, local_cluster, make_topic
):
    topic = make_topic(queues=1, broker_names=["broker-a"])
    producer.send_many([Message(topic, b"%d" % n) for n in range(3000)])
    (queue,) = admin.fetch_subscribe_queues(topic)
    addr = local_cluster.broker_addrs["broker-a"]

    read: list[int] = []
    for number, block in enumerate(client.read_blocks(QueueRange(queue, 0, 3000), max_messages=200)):
        read.extend(message.queue_offset for message in decode_messages(block.buffer))
        count = "8" if number % 2 == 0 else "32"
        admin.update_broker_config(addr, {"maxTransferCountOnMessageInMemory": count})
    admin.update_broker_config(addr, {"maxTransferCountOnMessageInMemory": "32"})

    assert read == list(range(3000))


def test_messages_of_a_range_are_those_sent_and_tags_are_compared_as_text(
    producer, client, admin, make_topic
):
    topic = make_topic(queues=1, broker_names=["broker-a"])
    tags = ["Aa", "BB", "C"]  # the first two have the same hash code, which is all that brokers compare
    results = [producer.send(Message(topic, b"%d" % n, tags[n % 3], (f"k{n}",))) for n in range(30)]
    (queue,) = admin.fetch_subscribe_queues(topic)
    admin.await_readable({queue: 30}, timeout=PATIENCE)

    whole = [m for found in client.read_messages(QueueRange(queue, 0, 30), max_messages=7) for m in found]
    some = [m for found in client.read_messages(QueueRange(queue, 3, 30), tags=["BB"]) for m in found]

    assert [m.msg_id for m in whole] == [result.msg_id for result in results]
    assert [m.offset_msg_id for m in whole] == [result.offset_msg_id for result in results]
    assert [(m.topic, m.body, m.keys) for m in whole] == [(topic, b"%d" % n, f"k{n}") for n in range(30)]
    assert [m.queue_offset for m in some] == list(range(4, 30, 3))


def test_messages_read_in_a_namespace_have_plain_topics_and_an_admin_sees_whole_ones(local_cluster):
    settings = {"name_server": local_cluster.name_server, "namespace": "ns"}
    name = f"test-{uuid.uuid4().hex[:12]}"
    with Client(ClientConfig(**settings)) as client, Admin(client) as admin:
        admin.create_topic(name, read_queue_nums=1, write_queue_nums=1)
        with Producer(ProducerConfig(**settings)) as producer:
            result = producer.send(Message(name, b"x"))
        admin.await_readable({result.queue: 1}, timeout=PATIENCE)
        range_ = QueueRange(result.queue, 0, 1)

        read = [message for found in client.read_messages(range_) for message in found]
        seen = [message for found in admin.read_messages(range_) for message in found]

    assert [(message.topic, message.body) for message in read] == [(name, b"x")]
    assert [message.topic for message in seen] == [f"ns%{name}"]


def test_a_program_that_forgets_to_close_ends_at_once_with_a_warning(local_cluster, make_topic):
    program = f"""
from rmqtools import Message, Producer, ProducerConfig
producer = Producer(ProducerConfig(name_server="{local_cluster.name_server}"))
producer.start()
print(producer.send(Message("{make_topic()}", b"x")).status.name)
del producer
"""
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", program],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )

    assert done.stdout == "SEND_OK\n"
    assert "ResourceWarning: unclosed Producer: call close()" in done.stderr
