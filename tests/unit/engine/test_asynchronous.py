"""Every public coroutine and asynchronous iterator of :mod:`rmqtools.aio`, on another event loop."""

import asyncio
import gc
import inspect
import re
import warnings
from collections.abc import Callable, Iterator, Sequence

import pytest

from rmqtools import (
    ClientConfig,
    ConsumeFromWhere,
    Message,
    MessageQueue,
    MirrorConfig,
    ProducerConfig,
    PullConsumerConfig,
    PushConsumerConfig,
    SimpleConsumerConfig,
    aio,
)
from rmqtools.engine.asynchronous import Asynchronous
from rmqtools.errors import ClientStateError, ConfigError
from rmqtools.model.queue import QueueRange
from rmqtools.testing import FakeCluster
from tests.support.transactions import COMMIT, Listener

CLASSES = [
    one
    for name in aio.__all__
    if inspect.isclass(one := getattr(aio, name)) and not hasattr(one, "execute_local_transaction")
]
QUEUE = MessageQueue("orders", "broker-a", 0)


async def consume(*_: object) -> None:
    """Never called."""


def push_consumer(name_server: str) -> aio.PushConsumer:
    consumer = aio.PushConsumer(PushConsumerConfig(group="push", name_server=name_server))
    consumer.subscribe("orders", consume)
    return consumer


def pull_consumer(name_server: str) -> aio.PullConsumer:
    consumer = aio.PullConsumer(PullConsumerConfig(group="pull", name_server=name_server))
    consumer.assign([QUEUE])
    return consumer


def simple_consumer(name_server: str) -> aio.SimpleConsumer:
    consumer = aio.SimpleConsumer(SimpleConsumerConfig(group="simple", name_server=name_server))
    consumer.subscribe("orders")
    return consumer


def producer(name_server: str) -> aio.Producer:
    return aio.Producer(ProducerConfig(name_server=name_server))


def transaction_producer(name_server: str) -> aio.TransactionProducer:
    config = ProducerConfig(name_server=name_server, group="deciding")
    return aio.TransactionProducer(config, Listener(lambda *_: COMMIT))


def mirror(name_server: str) -> aio.Mirror:
    source, target = ClientConfig(name_server=name_server), ProducerConfig(name_server=name_server)
    return aio.Mirror(MirrorConfig(source=source, target=target, topics={"orders": "copies"}))


def on_producer(make: Callable[[aio.Producer], Asynchronous]) -> Callable[[str], Sequence[Asynchronous]]:
    def made(name_server: str) -> Sequence[Asynchronous]:
        host = producer(name_server)
        return host, make(host)

    return made


MAKERS: dict[type, Callable[[str], Sequence[Asynchronous]]] = {
    aio.Client: lambda addr: [aio.Client(ClientConfig(name_server=addr))],
    aio.Admin: lambda addr: [aio.Admin(ClientConfig(name_server=addr))],
    aio.Producer: lambda addr: [producer(addr)],
    aio.TransactionProducer: lambda addr: [transaction_producer(addr)],
    aio.PullConsumer: lambda addr: [pull_consumer(addr)],
    aio.PushConsumer: lambda addr: [push_consumer(addr)],
    aio.SimpleConsumer: lambda addr: [simple_consumer(addr)],
    aio.Mirror: lambda addr: [mirror(addr)],
    aio.ExactAppender: on_producer(lambda host: aio.ExactAppender(host, QUEUE, writer="w", settle_seconds=0)),
    aio.DecisionLog: on_producer(lambda host: aio.DecisionLog(host, "decisions")),
    aio.StagedWrites: on_producer(
        lambda host: aio.StagedWrites(host, topic="orders", staging_topic="staged", writer="w")
    ),
}


def public_calls(kind: type) -> list[str]:
    """The names of all public methods that need an event loop."""
    return [
        name
        for name in dir(kind)
        if not name.startswith("_") or name in ("__aiter__", "__aenter__", "__aexit__")
        if inspect.isfunction(function := getattr(kind, name))
        if inspect.iscoroutinefunction(function)
        or "Async" in str(inspect.signature(function).return_annotation)
    ]


async def called(one: Asynchronous, name: str) -> str:
    """The error of a call; arguments do not matter, because nothing may look at them."""
    method = getattr(one, name)
    required = [
        each
        for each in inspect.signature(method).parameters.values()
        if each.default is each.empty and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    try:
        answer = method(*(QueueRange(QUEUE, 0, 1) if each.name == "range_" else None for each in required))
        await (anext(answer) if hasattr(answer, "__anext__") else answer)
    except Exception as error:  # noqa: BLE001 # whatever it is, the test compares its text
        return f"{type(error).__name__}: {error}"
    return "no error"


@pytest.fixture(scope="module")
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as cluster:
        for topic in ("orders", "copies", "decisions"):
            cluster.create_topic(topic, queues=1)
        yield cluster


@pytest.fixture
def home() -> Iterator[asyncio.AbstractEventLoop]:
    """The loop that everything is started on."""
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


async def start_all(made: Sequence[Asynchronous]) -> None:
    for one in made:
        await one.start()


async def close_all(made: Sequence[Asynchronous]) -> None:
    for one in reversed(made):
        await one.close()


def test_every_class_is_tried():
    assert set(MAKERS) == set(CLASSES)
    assert sum(len(public_calls(kind)) for kind in CLASSES) > 120


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_a_second_loop_is_refused_by_every_public_coroutine_and_iterator(kind, cluster, home):
    made = MAKERS[kind](cluster.name_server)
    home.run_until_complete(start_all(made))

    async def on_a_second_loop() -> dict[str, str]:
        async with asyncio.timeout(30):
            return {name: await called(made[-1], name) for name in public_calls(kind)}

    answers = asyncio.run(on_a_second_loop())
    home.run_until_complete(close_all(made))

    text = f"ClientStateError: this {kind.__name__} was started on another event loop: make a new one on this"
    assert {name: said for name, said in answers.items() if not said.startswith(text)} == {}


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_what_was_never_started_or_was_closed_may_be_closed_on_any_loop(kind, cluster, home):
    never_started = MAKERS[kind](cluster.name_server)
    asyncio.run(never_started[-1].close())
    made = MAKERS[kind](cluster.name_server)
    home.run_until_complete(start_all(made))
    home.run_until_complete(close_all(made))

    asyncio.run(close_all(made))


@pytest.mark.parametrize("kind", [aio.DecisionLog, aio.StagedWrites, aio.ExactAppender])
def test_what_works_on_a_producer_of_another_loop_is_refused_by_its_start_and_may_be_closed(
    kind, cluster, home
):
    host, one = MAKERS[kind](cluster.name_server)
    home.run_until_complete(host.start())

    with pytest.raises(ClientStateError, match="this Producer was started on another event loop"):
        asyncio.run(one.start())
    asyncio.run(one.close())
    home.run_until_complete(host.close())


def test_administration_on_a_client_of_another_loop_is_refused(cluster, home):
    client = aio.Client(ClientConfig(name_server=cluster.name_server))
    home.run_until_complete(client.start())
    admin = aio.Admin(client)

    with pytest.raises(ClientStateError, match="this Client was started on another event loop"):
        asyncio.run(admin.fetch_topic_list())
    home.run_until_complete(client.close())


def test_a_loop_that_is_closed_is_named_so(cluster):
    client = producer(cluster.name_server)
    home = asyncio.new_event_loop()
    home.run_until_complete(client.start())
    home.run_until_complete(client._client.close())  # nothing is left open; the producer does not know
    home.close()

    with pytest.raises(ClientStateError, match=r"event loop that is closed.*close it before its loop ends"):
        asyncio.run(client.send(Message("orders", b"1")))
    with pytest.raises(ClientStateError, match="event loop that is closed"):
        asyncio.run(client.close())
    client._loop = None  # else it warns that it is not closed


def test_an_iteration_that_goes_on_on_another_loop_is_refused(cluster, home):
    client = aio.Client(ClientConfig(name_server=cluster.name_server))
    with_messages = producer(cluster.name_server)

    async def store() -> int:
        async with with_messages:
            return max([(await with_messages.send(Message("orders", b"1"))).queue_offset for _ in range(3)])

    end = home.run_until_complete(store()) + 1
    home.run_until_complete(client.start())
    blocks = client.read_blocks(QueueRange(QUEUE, 0, end))
    assert home.run_until_complete(anext(blocks)).starts

    async def go_on() -> None:
        await anext(blocks)

    with pytest.raises(ClientStateError, match="this Client was started on another event loop"):
        asyncio.run(go_on())
    home.run_until_complete(blocks.aclose())
    home.run_until_complete(client.close())


def test_a_start_that_failed_may_be_tried_on_another_loop(cluster, home):
    consumer = aio.PushConsumer(PushConsumerConfig(group="push", name_server=cluster.name_server))
    with pytest.raises(ConfigError, match="subscribes to nothing"):
        asyncio.run(consumer.start())
    consumer.subscribe("orders", consume)

    home.run_until_complete(consumer.start())
    home.run_until_complete(consumer.close())


def ended_by_its_loop(cluster, *, swallows: bool, orderly: bool) -> list[str]:
    """Let the loop of a started push consumer end while messages wait; return the listener's steps."""
    steps: list[str] = []
    topic = f"left-{swallows}-{orderly}"
    cluster.create_topic(topic, queues=1)
    cluster.store(topic, *[b"x"] * 20)

    async def main() -> None:
        begun = asyncio.Event()

        async def listen(*_: object) -> None:
            steps.append("begin")
            begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                steps.append("cancelled")
                if not swallows:
                    raise

        config = PushConsumerConfig(
            group=topic,
            name_server=cluster.name_server,
            orderly=orderly,
            consume_threads=1,
            consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        )
        consumer = aio.PushConsumer(config)
        consumer.subscribe(topic, listen)
        await consumer.start()
        await begun.wait()

    asyncio.run(main())
    return steps


@pytest.mark.parametrize("orderly", [False, True], ids=["concurrent", "orderly"])
@pytest.mark.parametrize("swallows", [False, True], ids=["raises", "catches-it"])
def test_a_consumer_whose_loop_ends_begins_no_further_listener_call_and_is_named(cluster, swallows, orderly):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        steps = ended_by_its_loop(cluster, swallows=swallows, orderly=orderly)
        gc.collect()

    assert steps == ["begin", "cancelled"]
    (named,) = (str(one.message) for one in caught if "PushConsumer" in str(one.message))
    assert re.fullmatch(
        r"unclosed PushConsumer \S+@\S+, whose event loop has ended: call close\(\) .*", named
    )
