"""Mistakes of a first hour: each is refused at once, with thing, value and remedy, and nothing is sent.

What is wrong only on a server is in ``tests/behaviour/test_mistakes.py``. One file because it is one table.
"""

import asyncio
import datetime
import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import rmqtools
from rmqtools import (
    ClientConfig,
    Message,
    MessageModel,
    MessageQueue,
    ProducerConfig,
    PullConsumerConfig,
    PushConsumerConfig,
    SimpleConsumerConfig,
    aio,
)
from rmqtools.allocate import AllocateAveragely
from rmqtools.testing import FakeCluster, RequestCode

NOWHERE = "127.0.0.1:1"
SENDS = (RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE, RequestCode.UPDATE_AND_CREATE_TOPIC)
REMEDY = re.compile(r"\b(want|did you mean|set|call|use|give|write|make|choose|leave|send_many takes)\b")
QUEUE = MessageQueue("orders", "broker-a", 0)
AT_NOON = datetime.datetime(2026, 1, 31, 12)


@dataclass
class Clients:
    """Started clients, with any argument: the mistakes are for the programs that nobody type-checks."""

    cluster: FakeCluster
    producer: Any
    pull: Any
    simple: Any
    admin: Any


@pytest.fixture(scope="module")
def clients() -> Iterator[Clients]:
    with FakeCluster(auto_create_topics=False) as cluster:
        cluster.create_topic("orders")
        addr = cluster.name_server
        with (
            rmqtools.Producer(ProducerConfig(name_server=addr)) as producer,
            rmqtools.PullConsumer(PullConsumerConfig(name_server=addr, group="pull")) as pull,
            rmqtools.SimpleConsumer(SimpleConsumerConfig(name_server=addr, group="simple")) as simple,
            rmqtools.Admin(ClientConfig(name_server=addr)) as admin,
        ):
            pull.assign([QUEUE])
            yield Clients(cluster, producer, pull, simple, admin)


def producing(**settings: Any) -> ProducerConfig:
    return ProducerConfig(**({"name_server": NOWHERE} | settings))


def pushing(**settings: Any) -> PushConsumerConfig:
    return PushConsumerConfig(**({"name_server": NOWHERE, "group": "g"} | settings))


def pulling(**settings: Any) -> PullConsumerConfig:
    return PullConsumerConfig(**({"name_server": NOWHERE, "group": "g"} | settings))


def order(**values: Any) -> Message:
    return Message("orders", **({"body": b"1"} | values))


def plain(messages: object, context: object) -> None:
    """Never called."""


async def coroutine(messages: object, context: object) -> None:
    """Never called."""


def generator(messages: object, context: object) -> Iterator[None]:
    yield


class Decisions:
    """A transaction listener whose methods are coroutine functions."""

    async def execute_local_transaction(self, message: object, arg: object) -> None:
        """Never called."""

    async def check_local_transaction(self, message: object) -> None:
        """Never called."""


def subscribed(*args: Any, face: Any = rmqtools, **kwargs: Any) -> None:
    face.PushConsumer(pushing()).subscribe(*args, **kwargs)


async def with_block() -> None:
    producer: Any = aio.Producer(producing())
    with producer:
        """Never entered."""


async def async_with_block() -> None:
    producer: Any = rmqtools.Producer(producing())
    async with producer:
        """Never entered."""


def transactional(face: Any, listener: Any) -> None:
    face.TransactionProducer(producing(group="tx"), listener)


Case = Callable[[], object] | Callable[[Clients], object]


def of(name: str, call: Case, *says: str) -> Any:
    return pytest.param(call, says, id=name)


def setting(name: str, config: Callable[..., object], *says: str, **given: Any) -> Any:
    """A setting whose value is wrong."""
    return of(name, lambda: config(**given), *says)


def sent(name: str, *says: str, **given: Any) -> Any:
    """A message of which one field is wrong."""
    return of(name, lambda on: on.producer.send(order(**given)), *says)


any_: Any = rmqtools
SETTINGS = [
    of(
        "unknown",
        lambda: any_.ProducerConfig(nameserver=NOWHERE),
        "'nameserver' (did you mean 'name_server'?)",
    ),
    of("kafka", lambda: any_.ProducerConfig(bootstrap_servers=NOWHERE), "'bootstrap_servers' (did you mean"),
    of(
        "java",
        lambda: any_.ProducerConfig(namesrvAddr=NOWHERE),
        "'namesrvAddr' (did you mean 'name_server'?)",
    ),
    of("group-id", lambda: any_.PushConsumerConfig(group_id="g"), "'group_id' (did you mean 'group'?)"),
    setting("typo", producing, "unknown setting 'send_timeot' (did you mean 'send_timeout'?)", send_timeot=1),
    of(
        "no-name",
        lambda: any_.ProducerConfig(NOWHERE),
        "got '127.0.0.1:1' without a name: want ProducerConfig(",
    ),
    setting("list", producing, "name_server=['127.0.0.1:1']: want text: host:port", name_server=[NOWHERE]),
    setting("none", producing, "name_server=None: want text", "leave it out", name_server=None),
    setting("no-port", producing, "'localhost': want host:port", name_server="localhost"),
    setting("text", producing, "send_timeout='3000': want a number", "seconds", send_timeout="3000"),
    setting("timedelta", producing, "linger=datetime.timedelta", "seconds", linger=datetime.timedelta(1)),
    setting("nan", producing, "send_timeout=nan: want more than 0", send_timeout=float("nan")),
    setting("fraction", producing, "max_in_flight=1.5: want a whole number", max_in_flight=1.5),
    setting("flag-text", producing, "enable_trace='false': want True or False", enable_trace="false"),
    setting("flag-number", pushing, "consume_threads=True: want a whole number", consume_threads=True),
    of("bytes", lambda: producing(access_key="a", secret_key=b"hunter2"), "secret_key is bytes: want text"),
    setting("compression", producing, "'gzip': want one of zlib, lz4, zstd, none", compression="gzip"),
    setting("model", pushing, "'BROADCAST': want one of CLUSTERING, BROADCAST", message_model="BROADCAST"),
    setting("start", pushing, "'FIRST': want one of CONSUME_FROM_LAST_OFFSET", consume_from="FIRST"),
    setting("other-enum", pushing, "want one of CONSUME_FROM_", consume_from=MessageModel.CLUSTERING),
    setting("time", pushing, "consume_timestamp_ms=datetime", "whole number", consume_timestamp_ms=AT_NOON),
    of("no-group", lambda: PushConsumerConfig(name_server=NOWHERE), "no group: set group='name'"),
    setting(
        "map", producing, "broker_address_map=['a']: want a mapping", "function", broker_address_map=["a"]
    ),
    of(
        "mirror",
        lambda: any_.MirrorConfig(
            source=producing(), target=ClientConfig(name_server=NOWHERE), topics={"a": "b"}
        ),
        "target=ClientConfig(",
        "want a ProducerConfig",
    ),
]
CLIENTS = [
    of(
        "no-config",
        lambda: any_.Producer(),
        "Producer: missing a required argument: 'config'; want Producer(Pr",
    ),
    of("no-config-async", lambda: any_.aio.Producer(), "want Producer(ProducerConfig(...))"),
    of("settings", lambda: any_.Producer(name_server=NOWHERE), "want Producer(ProducerConfig(...))"),
    of(
        "address",
        lambda: any_.PullConsumer(NOWHERE),
        "got a str: want a PullConsumerConfig, as in PullConsumer(",
    ),
    of(
        "config-of-another",
        lambda: any_.PushConsumer(pulling()),
        "got a PullConsumerConfig: want a PushConsumerC",
    ),
    of("no-listener", lambda: any_.TransactionProducer(producing(group="tx")), "Config(...), listener)"),
    of(
        "function",
        lambda: transactional(rmqtools, plain),
        "no method execute_local_transaction: want an object",
    ),
    of("class", lambda: transactional(aio, Decisions), "no method execute_local_transaction: want an object"),
    of(
        "coroutines",
        lambda: transactional(rmqtools, Decisions()),
        "coroutine function",
        "aio.TransactionProducer",
    ),
    of("other-face", lambda: any_.DecisionLog(aio.Producer(producing()), "t"), "want a rmqtools.Producer"),
    of("no-producer", lambda: any_.ExactAppender(), "want ExactAppender(producer, queue, writer=...)"),
    of(
        "with",
        lambda: asyncio.run(with_block()),
        "aio.Producer works in 'async with'",
        "use rmqtools.Producer",
    ),
    of(
        "async-with",
        lambda: asyncio.run(async_with_block()),
        "rmqtools.Producer works in 'with'",
        "use rmqtools.aio",
    ),
    of("strategy", lambda: any_.PushConsumer(pushing(), strategy="AVGG"), "'AVGG' (did you mean 'AVG'?)"),
    of(
        "its-class",
        lambda: any_.PushConsumer(pushing(), strategy=AllocateAveragely),
        "is a class: want an object",
    ),
    of("no-strategy", lambda: any_.PullConsumer(pulling(), strategy=5), "strategy '5'", "want a text 'name'"),
    of(
        "queue-listener",
        lambda: any_.PushConsumer(pushing(), message_queue_listener=plain),
        "message_queue_listener is <function plain",
        "want listener(topic, all_queues, own_queues)",
    ),
    of(
        "error-listener",
        lambda: any_.PullConsumer(pulling(), error_listener=5),
        "error_listener is 5: want listen",
    ),
    of("fake", lambda: FakeCluster(brokers="broker-a"), "brokers='broker-a': want a list of names"),
]
SUBSCRIPTIONS = [
    of(
        "coroutine",
        lambda: subscribed("orders", coroutine),
        "'orders'",
        "a coroutine function",
        "rmqtools.aio.Push",
    ),
    of("plain", lambda: subscribed("orders", plain, face=aio), "a plain function", "write async def"),
    of(
        "lambda",
        lambda: subscribed("orders", lambda m, c: None, face=aio),
        "a plain function",
        "write async def",
    ),
    of("number-of-tags", lambda: subscribed("orders", plain, tags=5), "tags=5: want text"),
    of("generator", lambda: subscribed("orders", generator), "which contains yield: want a function"),
    of(
        "called",
        lambda: subscribed("orders", plain([], None)),
        "is None: want a function listener(messages, con",
    ),
    of("arguments", lambda: subscribed("orders", len), "want a function listener(messages, context)"),
    of("topics", lambda: subscribed(["a", "b"], plain), "topic ['a', 'b'] is a list: want one name"),
    of("blank", lambda: subscribed("my orders", plain), "'my orders' has an illegal character: allowed are"),
    of(
        "tags", lambda: subscribed("orders", plain, tags=["a"]), "'orders': tags=['a']: want text", "'a || b'"
    ),
    of("sql", lambda: subscribed("orders", plain, sql=True), "sql=True: want text"),
    of("both", lambda: subscribed("orders", plain, tags="a", sql="a = 1"), "exclude one another: give one"),
    of(
        "nothing",
        lambda: any_.PushConsumer(pushing()).start(),
        "subscribes to nothing: call subscribe before",
    ),
    of(
        "not-started",
        lambda: any_.Producer(producing()).send(order()),
        "is new: call start() or use it in a with",
    ),
]
CALLS = [
    of(
        "text",
        lambda on: on.producer.send("text"),
        "a str is no message: want a Message, as in Message('topic', b'",
    ),
    of("several", lambda on: on.producer.send([order()]), "a list is no message", "send_many takes several"),
    sent("body", "body is str: want bytes; encode text first", body="text"),
    of(
        "swapped",
        lambda on: on.producer.send(any_.Message(b"1", "orders")),
        "topic b'1' is a bytes: want one name",
    ),
    sent("tags", "tags is list: want text", tags=["a"]),
    sent("number", "keys is int: want text", keys=[5]),
    sent("value", "property 'a' is int: want text", properties={"a": 1}),
    sent("properties", "properties is NoneType: want a mapping", properties=None),
    sent("reserved", "reserved", "choose another name", properties={"KEYS": "a"}),
    sent("flag", "flag='1': want a signed 32-bit number", flag="1"),
    sent("delay", "delay='5s': want more than 0 seconds, as a number", delay="5s"),
    sent("endless", "delay=inf: want more than 0 seconds, as a number below 10^15", delay=float("inf")),
    sent("far", f"deliver_at_ms={2**63}: want milliseconds since 1970", deliver_at_ms=2**63),
    sent("level", "delay_level='3': want 1 to 18", delay_level="3"),
    sent("deliver-at", "want milliseconds since 1970", deliver_at_ms=AT_NOON),
    sent("priority", "priority='high': want 0 or more", priority="high"),
    of("timeout", lambda on: on.producer.send(order(), timeout="3"), "timeout='3': want seconds as a number"),
    of(
        "timeout-of-many",
        lambda on: on.producer.send_many([order()], timeout="3"),
        "timeout='3': want seconds",
    ),
    of(
        "queue",
        lambda on: on.producer.send(order(), queue=0),
        "queue=0: want a MessageQueue, as fetch_publish_q",
    ),
    of("selector", lambda on: on.producer.send(order(), selector="hash"), "selector='hash': want a function"),
    of(
        "no selector",
        lambda on: on.producer.send(order(), arg="key"),
        "arg='key' without selector",
        "leave arg out",
    ),
    of("no-key", lambda on: on.producer.send_orderly(order()), "send_orderly needs a sharding_key"),
    of("one", lambda on: on.producer.send_batch(order()), "messages is a Message: want a list"),
    of(
        "each",
        lambda on: on.producer.send_many(order() for _ in "ab"),
        "messages is a generator: want a list",
    ),
    of(
        "topics",
        lambda on: on.producer.fetch_publish_queues(["a"]),
        "fetch_publish_queues(topic=['a']): want text",
    ),
    of("poll", lambda on: on.pull.poll("5"), "poll(timeout='5', max_messages=None): want >= 0"),
    of(
        "assign",
        lambda on: on.pull.assign("orders"),
        "queues='orders': want a list of MessageQueue, as fetch_queues",
    ),
    of("seek", lambda on: on.pull.seek(QUEUE, "5"), "seek(offset='5'): want a whole number"),
    of("commit", lambda on: on.pull.commit("orders"), "commit(offsets='orders'): want a mapping"),
    of("receive", lambda on: on.simple.receive(wait="5"), "wait='5': want 0 seconds to 12 hours"),
    of("ack", lambda on: on.simple.ack("7F0000"), "a str is no message: want what receive has returned"),
    of("hide", lambda on: on.simple.change_invisible_duration("7F", 5), "(message='7F'): want a MessageExt"),
    of(
        "create",
        lambda on: on.admin.create_topic("new", read_queue_nums="4"),
        "nums='4'): want a whole number",
    ),
    of("perm", lambda on: on.admin.create_topic("new", perm="RW"), "create_topic(perm='RW'): want a Perm"),
    of(
        "type",
        lambda on: on.admin.create_topic("new", message_type="ORDERED"),
        "'ORDERED'): want one of",
        "FIFO",
    ),
    of(
        "brokers",
        lambda on: on.admin.create_topic("new", broker_names="a"),
        "broker_names='a'): want a list of texts",
    ),
    of("offset", lambda on: on.admin.min_offset("orders"), "min_offset(queue='orders'): want a MessageQueue"),
    of("range", lambda on: on.admin.read_messages(QUEUE), "read_messages(range_=Mess", "want a QueueRange"),
]


def refusal_of(call: Callable[[], object]) -> str:
    with pytest.raises((TypeError, ValueError, rmqtools.RocketMQError)) as refused:
        call()
    return str(refused.value)


@pytest.mark.parametrize(("call", "says"), [*SETTINGS, *CLIENTS, *SUBSCRIPTIONS])
def test_a_mistake_is_refused_before_a_client_starts(call, says):
    text = refusal_of(call)

    assert [part for part in says if part not in text] == [], text
    assert REMEDY.search(text) or "allowed are" in text, text
    assert "hunter2" not in text


@pytest.mark.parametrize(("call", "says"), CALLS)
def test_a_mistake_is_refused_before_anything_is_sent(clients, call, says):
    text = refusal_of(lambda: call(clients))

    assert [part for part in says if part not in text] == [], text
    assert REMEDY.search(text) or "needs" in text, text
    assert [code for code in SENDS if clients.cluster.requests(code=code)] == []


@pytest.mark.parametrize(
    "given",
    [
        {"message": "text"},
        {"message": [order()]},
        {"queue": 0},
        {"selector": "hash"},
        {"arg": "key"},
        {"timeout": "3"},
    ],
    ids=str,
)
def test_an_asyncio_send_refuses_its_arguments_like_a_blocking_one(clients, given):
    async def send() -> object:
        async with aio.Producer(producing()) as producer:
            return await producer.send(**arguments)

    arguments = {"message": order()} | given

    assert refusal_of(lambda: asyncio.run(send())) == refusal_of(lambda: clients.producer.send(**arguments))


def test_there_are_more_than_fifty_mistakes_each_named_once():
    tables = (SETTINGS, CLIENTS, SUBSCRIPTIONS, CALLS)

    assert sum(map(len, tables)) > 50
    assert all(len({one.id for one in table}) == len(table) for table in tables)


def test_type_checkers_refuse_these_texts_too():
    """``mypy --strict`` checks this file: an ignored error that is none any more is an error itself."""
    address, group = NOWHERE, "g"

    with pytest.raises(ValueError, match="FIRST"):
        PushConsumerConfig(name_server=address, group=group, consume_from="FIRST")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="BROADCAST"):
        PushConsumerConfig(name_server=address, group=group, message_model="BROADCAST")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="gzip"):
        ProducerConfig(name_server=address, compression="gzip")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="AVGG"):
        rmqtools.PushConsumer(pushing(), strategy="AVGG")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="CONSUME_FROM_TIMESTAMP"):
        SimpleConsumerConfig(name_server=address, group=group, consume_from="CONSUME_FROM_TIMESTAMP")  # type: ignore[arg-type]


class Called:
    def __call__(self, messages: object, context: object) -> Any:
        """Return whatever it likes."""


class CalledAsynchronously:
    async def __call__(self, messages: object, context: object) -> None:
        """Never called."""

    async def method(self, messages: object, context: object) -> None:
        """Never called."""


def handled(listener: Any) -> Any:
    @functools.wraps(listener)
    def wrapper(*args: object) -> Any:
        return listener(*args)

    return wrapper


async def of_three(first: object, messages: object, context: object) -> None:
    """Never called."""


def annotated(messages: object, context: object) -> "asyncio.Future[None]":
    """Never called."""
    return asyncio.get_running_loop().create_future()


annotated.__annotations__["return"] = asyncio.Future[None]


@pytest.mark.parametrize(
    "listener",
    [
        pytest.param(coroutine, id="coroutine-function"),
        pytest.param(functools.partial(of_three, 1), id="partial"),
        pytest.param(CalledAsynchronously(), id="object"),
        pytest.param(CalledAsynchronously().method, id="method"),
        pytest.param(Called(), id="object-whose-answer-is-not-known"),
        pytest.param(handled(coroutine), id="decorated"),
        pytest.param(annotated, id="annotated"),
    ],
)
def test_every_kind_of_awaitable_listener_is_taken_by_asyncio(listener):
    aio.PushConsumer(pushing()).subscribe("orders", listener)


@pytest.mark.parametrize(
    "listener",
    [
        pytest.param(plain, id="function"),
        pytest.param(lambda messages, context: None, id="lambda"),
        pytest.param(functools.partial(lambda first, messages, context: None, 1), id="partial"),
        pytest.param(Called(), id="object"),
        pytest.param(max, id="builtin"),
        pytest.param(handled(coroutine), id="wrapper-that-may-run-the-coroutine"),
    ],
)
def test_every_kind_of_plain_listener_is_taken_by_the_blocking_consumer(listener):
    consumer: Any = rmqtools.PushConsumer(pushing())
    consumer.subscribe("orders", listener)


def test_one_key_may_be_given_as_text():
    assert order(keys="order-1").keys_text == "order-1"
    assert order(keys=["order-1", "customer-7"]).keys_text == "order-1 customer-7"


def test_numbers_of_other_libraries_and_paths_are_settings_too(tmp_path):
    class Four:
        def __index__(self) -> int:
            return 4

        def __float__(self) -> float:
            return 4.0

    config = producing(max_in_flight=Four(), send_timeout=Four(), tls_enable=True, tls_ca_file=tmp_path)

    assert (config.max_in_flight, config.send_timeout, config.tls_ca_file) == (4, 4.0, tmp_path)
