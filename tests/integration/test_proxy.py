"""Clients whose name server is a 5.x proxy: its remoting port forwards to the brokers."""

import json
import re
from collections.abc import Iterator, Sequence

import pytest

from rmqtools import (
    Admin,
    Client,
    ClientConfig,
    ConsumeConcurrentlyStatus,
    ConsumeContext,
    ConsumeOrderlyStatus,
    ExactAppender,
    Message,
    MessageExt,
    MessageModel,
    MessageQueue,
    Producer,
    ProducerConfig,
    PullConsumer,
    PullConsumerConfig,
    SimpleConsumer,
    SimpleConsumerConfig,
    TransactionProducer,
)
from rmqtools.allocate import AllocateByPins
from rmqtools.errors import SendError, UnsupportedError
from rmqtools.policy.endpoint.features import BROKER_SHARES, PINS, REQUEST_REPLY, SQL_FILTERS, TOPICS
from tests.support.cluster_scene import wait_until
from tests.support.command_line import rmqtools
from tests.support.listening import FIRST, Heard, committed, listening, new_group, numbers
from tests.support.patience import PATIENCE
from tests.support.reading import await_messages, await_readable, read_all
from tests.support.resting import RestingCluster
from tests.support.transactions import COMMIT, ROLLBACK, Listener

pytestmark = pytest.mark.broker


@pytest.fixture
def config(proxy: str) -> ClientConfig:
    return ClientConfig(name_server=proxy)


@pytest.fixture
def proxied(config: ClientConfig) -> Iterator[Admin]:
    with Admin(config) as admin:
        yield admin


@pytest.fixture
def reader(config: ClientConfig) -> Iterator[Client]:
    with Client(config) as client:
        yield client


@pytest.fixture
def sender(proxy: str) -> Iterator[Producer]:
    with Producer(ProducerConfig(name_server=proxy, group="through-proxy")) as producer:
        yield producer


def test_every_way_of_sending_passes_and_ranges_are_read(sender, reader, proxied, make_topic):
    topic = make_topic(queues=2)
    single = [Message(topic, body) for body in numbers(3)]

    sender.send(single[0])
    sender.send_async(single[1]).result(PATIENCE)
    sender.send_oneway(single[2])
    sender.send_batch([Message(topic, body) for body in numbers(3, 6)])
    sender.send_many([Message(topic, body) for body in numbers(6, 40)])

    messages = await_messages(reader, proxied, topic, 40)
    assert sorted(int(message.body) for message in messages) == list(range(40))


def test_thousands_of_sends_at_once_share_requests_and_are_stored_once(proxy, reader, proxied, make_topic):
    topic = make_topic(queues=2)
    config = ProducerConfig(name_server=proxy, group="through-proxy", linger=0.01)
    with Producer(config) as producer:
        futures = [producer.send_async(Message(topic, body), timeout=30) for body in numbers(3000)]
        results = [future.result(PATIENCE) for future in futures]

    await_readable(proxied, results)
    assert sorted(int(message.body) for message in read_all(reader, proxied, topic)) == list(range(3000))
    assert not any(result.may_be_duplicated for result in results)


def test_offsets_are_found_by_time(sender, proxied, make_topic):
    topic = make_topic(queues=1, broker_names=["broker-a"])
    results = [sender.send(Message(topic, body)) for body in numbers(2)]
    await_readable(proxied, results)
    (queue,) = proxied.fetch_subscribe_queues(topic)

    assert (proxied.min_offset(queue), proxied.max_offset(queue)) == (0, 2)
    assert (proxied.search_offset(queue, 0), proxied.search_offset(queue, 2**45)) == (0, 2)


def test_a_delayed_message_needs_a_topic_of_its_type_and_the_error_says_so(sender, make_topic):
    plain, delayed = make_topic(queues=1), make_topic(queues=1, message_type="DELAY")

    sender.send(Message(delayed, b"x", delay_level=1))
    with pytest.raises(
        SendError, match=rf"topic '{plain}' has the message type NORMAL.*message_type='DELAY'"
    ):
        sender.send(Message(plain, b"x", delay_level=1))


def test_a_topic_of_mixed_type_takes_every_message(sender, reader, proxied, make_topic):
    topic = make_topic(queues=1, message_type="MIXED")

    sender.send(Message(topic, b"0"))
    sender.send(Message(topic, b"1", delay_level=1))
    sender.send_orderly(Message(topic, b"2", sharding_key="key"))

    assert sorted(message.body for message in await_messages(reader, proxied, topic, 3)) == numbers(3)


def test_a_push_consumer_gets_all_and_commits(proxy, sender, proxied, make_topic):
    topic, group, heard = make_topic(queues=2), new_group(), Heard()
    sender.send_many([Message(topic, body, tags="a" if n % 2 else "b") for n, body in enumerate(numbers(60))])

    with listening(proxy, topic, heard, group=group, tags="a"):
        heard.wait(30)

    assert sorted(int(body) for body in heard.bodies) == list(range(1, 60, 2))
    assert committed(proxied, group, topic) == 60


@pytest.mark.slow  # it waits for a retry of 10 s
def test_a_failed_message_comes_again(proxy, sender, make_topic):
    def answer(messages: Sequence[MessageExt], context: ConsumeContext) -> ConsumeConcurrentlyStatus:
        context.delay_level_when_next_consume = 1
        if messages[0].reconsume_times == 0:
            return ConsumeConcurrentlyStatus.RECONSUME_LATER
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    topic, heard = make_topic(queues=1), Heard(answer)
    sender.send(Message(topic, b"x"))

    with listening(proxy, topic, heard):
        first, second = heard.wait(2)

    assert (first.reconsume_times, second.reconsume_times) == (0, 1)


def test_messages_of_a_sharding_key_are_consumed_in_order(proxy, sender, make_topic):
    topic = make_topic(queues=2, message_type="FIFO")
    heard = Heard(lambda messages, context: ConsumeOrderlyStatus.SUCCESS)
    for body in numbers(20):
        sender.send_orderly(Message(topic, body, sharding_key="key"))

    with listening(proxy, topic, heard, orderly=True):
        heard.wait(20)

    assert heard.bodies == numbers(20)


def test_a_pull_consumer_polls_and_commits(proxy, sender, proxied, make_topic):
    topic, group = make_topic(queues=2), new_group()
    sender.send_many([Message(topic, body) for body in numbers(50)])

    consumer = PullConsumer(PullConsumerConfig(name_server=proxy, group=group, consume_from=FIRST))
    consumer.subscribe(topic)
    with consumer:
        bodies: list[bytes] = []
        while len(bodies) < 50:
            bodies += [message.body for message in consumer.poll(10)]
        consumer.commit()

    assert sorted(map(int, bodies)) == list(range(50))
    assert committed(proxied, group, topic) == 50


def test_members_of_a_broadcasting_group_get_everything(proxy, sender, make_topic, tmp_path):
    topic, group = make_topic(queues=1), new_group()
    sender.send_batch([Message(topic, body) for body in numbers(5)])

    for number in range(2):
        heard, path = Heard(), str(tmp_path / f"{number}.json")
        settings = {"message_model": MessageModel.BROADCASTING, "offset_store_path": path}
        with listening(proxy, topic, heard, group=group, instance_name=str(number), **settings):
            heard.wait(5)
        assert sorted(heard.bodies) == numbers(5)


def test_members_through_a_proxy_are_found_beside_direct_ones_and_alone(
    proxy, admin, local_cluster, make_topic
):
    def check() -> tuple[int, list[dict[str, str]]]:
        done = rmqtools("group", "check", group, "--json", NAMESRV_ADDR=local_cluster.name_server)
        return done.returncode, json.loads(done.stdout)

    topic, group = make_topic(queues=1), new_group()
    with listening(proxy, topic, Heard(), group=group, instance_name="proxied"):
        wait_until(lambda: admin.fetch_group(group).proxied)
        alone = check()
        with listening(local_cluster.name_server, topic, Heard(), group=group, instance_name="direct"):
            wait_until(lambda: admin.fetch_group(group).members)
            mixed = check()
            shown = rmqtools("group", "show", group, NAMESRV_ADDR=local_cluster.name_server).stdout
    wait_until(lambda: not admin.fetch_group(group).proxied)

    status, (silent,) = alone
    assert (status, silent["kind"]) == (3, "member_silent")
    assert f"127.0.0.1@proxied came through proxy {proxy}: no broker knows it" in silent["text"]
    status, (found,) = mixed
    assert (status, found["kind"]) == (1, "members_proxied")
    assert "1 member, 1 more through a proxy" in shown
    assert f"127.0.0.1@proxied (proxy {proxy}); and directly: 127.0.0.1@direct" in found["text"]
    assert "give all the same name_server" in found["text"]


def test_traces_of_sent_messages_pass(proxy, client, admin, make_topic):
    """They are sent through the proxy and read from the brokers."""
    config = ProducerConfig(name_server=proxy, group="traced", enable_trace=True)
    with Producer(config) as producer:
        result = producer.send(Message(make_topic(queues=1), b"x"))

    wait_until(
        lambda: result.msg_id in {each.keys for each in read_all(client, admin, "RMQ_SYS_TRACE_TOPIC")}
    )


def test_only_committed_transactions_become_visible(proxy, reader, proxied, make_topic):
    topic = make_topic(queues=1, broker_names=["broker-a"], message_type="TRANSACTION")
    config = ProducerConfig(name_server=proxy, group=new_group())
    decisions = {b"no": ROLLBACK, b"yes": COMMIT}
    listener = Listener(lambda message, arg: decisions[message.body])
    soon = {"CHECK_IMMUNITY_TIME_IN_SECONDS": "1"}  # how old a half message is when a broker asks

    with TransactionProducer(config, listener) as producer:
        results = [
            producer.send_message_in_transaction(Message(topic, body, properties=soon)) for body in decisions
        ]
        await_messages(reader, proxied, topic, 1)

    assert all("before a broker asks" in str(result.end_transaction_error) for result in results)
    assert [message.body for message in read_all(reader, proxied, topic)] == [b"yes"]
    assert listener.checked == []


def test_a_message_with_a_priority_is_in_the_queue_of_its_number(sender, make_topic):
    topic = make_topic(queues=4, message_type="PRIORITY")

    placed = [sender.send(Message(topic, b"x", priority=priority)).queue.queue_id for priority in (0, 2, 9)]

    assert placed == [0, 2, 3]


@pytest.mark.parametrize(
    ("feature", "ask"),
    [
        pytest.param(TOPICS, lambda admin: admin.fetch_topic_list(), id="topic-list"),
        pytest.param(TOPICS, lambda admin: admin.create_topic("T"), id="create-topic"),
        pytest.param(TOPICS, lambda admin: admin.create_topic("T", message_type="FIFO"), id="topic-type"),
        pytest.param(TOPICS, lambda admin: admin.delete_topic("T"), id="delete-topic"),
        pytest.param(TOPICS, lambda admin: admin.fetch_cluster_info(), id="cluster-info"),
        pytest.param(TOPICS, lambda admin: admin.fetch_group("g"), id="group"),
        pytest.param(PINS, lambda admin: admin.fetch_pin_groups(), id="pins"),
    ],
)
def test_operating_through_a_proxy_is_refused_by_name(proxied, feature, ask):
    with pytest.raises(UnsupportedError, match=re.escape(feature.name)) as caught:
        ask(proxied)

    assert feature.instead in str(caught.value)


@pytest.mark.parametrize(
    ("feature", "settings"),
    [
        pytest.param(PINS, {"strategy": AllocateByPins(when_absent="nobody")}, id="pins"),
        pytest.param(BROKER_SHARES, {"client_rebalance": False}, id="popping"),
        pytest.param(SQL_FILTERS, {"sql": "a = 1"}, id="condition"),
    ],
)
def test_consumers_that_need_more_than_a_proxy_are_refused_at_their_start(
    proxy, make_topic, feature, settings
):
    with (
        pytest.raises(UnsupportedError, match=re.escape(feature.instead)),
        listening(proxy, make_topic(queues=1), Heard(), **settings),
    ):
        """Never entered."""


def test_requests_that_want_a_reply_are_refused(sender, make_topic):
    with pytest.raises(UnsupportedError, match=re.escape(REQUEST_REPLY.name)):
        sender.request(Message(make_topic(queues=1), b"x"))


def test_a_simple_consumer_is_refused_at_its_start(proxy, make_topic):
    consumer = SimpleConsumer(SimpleConsumerConfig(name_server=proxy, group=new_group()))
    consumer.subscribe(make_topic(queues=1))

    with pytest.raises(UnsupportedError, match=r"SimpleConsumer.*proxy.*PushConsumer"):
        consumer.start()


def test_an_exact_appender_is_refused_at_its_start(sender, make_topic):
    appender = ExactAppender(sender, MessageQueue(make_topic(queues=1), "broker-a", 0), writer="w")

    with pytest.raises(UnsupportedError, match="not the writer's own"):
        appender.start()


@pytest.mark.slow
def test_a_local_cluster_with_a_proxy_delays_and_recalls():
    with RestingCluster(proxy=True, timer_wheel=True) as cluster:
        with Admin(ClientConfig(name_server=cluster.name_server)) as admin:
            admin.create_topic("T", read_queue_nums=1, write_queue_nums=1, message_type="DELAY")
        config = ClientConfig(name_server=cluster.proxy)
        with (
            Admin(config) as admin,
            Client(config) as client,
            Producer(ProducerConfig(name_server=cluster.proxy, group="g")) as producer,
        ):
            producer.send(Message("T", b"soon", delay=2.0))
            late = producer.send(Message("T", b"never", delay=5.0))
            producer.recall("T", late.recall_handle or "")

            (message,) = await_messages(client, admin, "T", 1)
            assert message.body == b"soon"
            assert message.store_timestamp_ms - message.born_timestamp_ms >= 1000
