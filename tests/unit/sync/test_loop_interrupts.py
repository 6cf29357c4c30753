"""Every blocking method, interrupted at the points where CPython runs signal handlers.

The methods are found, not listed: a new one is interrupted too. The methods of consumers that return messages
are interrupted at each point, and every message is counted. `make unit` takes every n-th method and point.
"""

import asyncio
import contextlib
import inspect
import itertools
import os
import random
import types
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import pytest

import rmqtools
from rmqtools import (
    Admin,
    Client,
    ClientConfig,
    ConsumeFromWhere,
    DecisionLog,
    ExactAppender,
    Message,
    MessageQueue,
    Mirror,
    MirrorConfig,
    Perm,
    Producer,
    ProducerConfig,
    PullConsumer,
    PullConsumerConfig,
    PushConsumer,
    PushConsumerConfig,
    QueueRange,
    SimpleConsumer,
    SimpleConsumerConfig,
    StagedWrites,
    TransactionProducer,
    aio,
)
from rmqtools.allocate import Pins
from rmqtools.errors import RocketMQError
from rmqtools.sync.lifecycle import Blocking
from rmqtools.sync.loop_thread import LoopThread
from rmqtools.testing import FakeCluster
from tests.support.cluster_scene import wait_until
from tests.support.interrupts import cancelled_at, count_points, interrupted_at_point
from tests.support.transactions import COMMIT, Listener

Q0 = MessageQueue("orders", "broker-a", 0)
COUNT = 24  # messages
COMMITTING = Listener(lambda message, arg: COMMIT)
IS_BRIEF = os.environ.get("HYPOTHESIS_PROFILE") == "brief"
EVERY_METHOD = 12 if IS_BRIEF else 1
EVERY_POINT = 5 if IS_BRIEF else 1
POINTS = 3  # of each method in a short run
_POINTS_OF_A_REFUSED_CALL = 50
_NUMBERS = itertools.count()


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as cluster:
        for topic, queues in {"orders": 2, "target": 2, "decisions": 1}.items():
            cluster.create_topic(topic, queues=queues)
        cluster.store("orders", *(b"%d" % number for number in range(COUNT)), queue=Q0)
        yield cluster


def classes() -> list[type[Blocking]]:
    found = (getattr(rmqtools, name) for name in rmqtools.__all__)
    return [each for each in found if isinstance(each, type) and issubclass(each, Blocking)]


def methods_of(owner: type) -> list[str]:
    """The public methods of a class, and its iteration."""
    names = [name for name in dir(owner) if not name.startswith("_") or name == "__iter__"]
    return [name for name in names if inspect.isfunction(inspect.getattr_static(owner, name))]


METHODS = [f"{owner.__name__}.{name}" for owner in classes() for name in methods_of(owner)]


@contextmanager
def made(name: str, cluster: FakeCluster) -> Iterator[Any]:
    """An object of a class, started unless it is started by its method."""
    at: dict[str, Any] = {"name_server": cluster.name_server}
    first = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    consumer: dict[str, Any] = at | {"group": f"g{next(_NUMBERS)}", "consume_from": first}
    appends: dict[str, Any] = {"writer": "w", "settle_seconds": 0}
    with ExitStack() as stack:

        def producer() -> Producer:
            return stack.enter_context(Producer(ProducerConfig(**at)))

        make: dict[type, Callable[[], Any]] = {
            Admin: lambda: Admin(ClientConfig(**at)),
            Client: lambda: Client(ClientConfig(**at)),
            Producer: lambda: Producer(ProducerConfig(**at, group="p")),
            TransactionProducer: lambda: TransactionProducer(ProducerConfig(**at, group="t"), COMMITTING),
            PullConsumer: lambda: PullConsumer(PullConsumerConfig(**consumer)),
            PushConsumer: lambda: PushConsumer(PushConsumerConfig(**consumer)),
            SimpleConsumer: lambda: SimpleConsumer(SimpleConsumerConfig(**consumer)),
            DecisionLog: lambda: DecisionLog(producer(), "decisions"),
            ExactAppender: lambda: ExactAppender(
                producer(), MessageQueue("target", "broker-a", 0), **appends
            ),
            StagedWrites: lambda: StagedWrites(
                producer(), topic="target", staging_topic="staging", **appends
            ),
            Mirror: lambda: Mirror(
                MirrorConfig(
                    source=ClientConfig(**at),
                    target=ProducerConfig(**at),
                    topics={"orders": "target"},
                    name="m",
                    source_name="s",
                    settle_seconds=0,
                )
            ),
        }
        owner, method = name.split(".")
        one = make[getattr(rmqtools, owner)]()
        if owner == "PushConsumer":
            one.subscribe("other", lambda messages, context: None)
        elif owner in ("PullConsumer", "SimpleConsumer") and not method.endswith(("subscribe", "assign")):
            one.subscribe("orders")
        try:
            if method != "start":
                one.start()
            if owner == "StagedWrites" and method in ("commit", "give_up", "status"):
                one.prepare()
            yield one
        finally:
            one.close()


def given() -> dict[str, Any]:
    """Values for parameters without a default, by name; also for some that would let a call wait."""

    message = Message("orders", b"x", sharding_key="k")
    return {
        "topic": "orders",
        "topics": ["orders"],
        "group": "g",
        "groups": ["g"],
        "queue": Q0,
        "queues": [Q0],
        "message": message,
        "messages": [message],
        "positions": [1],
        "key": "k",
        "record": b"r",
        "batch": 1,
        "name_server": "127.0.0.1:9876",
        "timestamp_ms": 0,
        "broker_name": "broker-a",
        "broker_addr": "127.0.0.1:10911",
        "range_": QueueRange(Q0, 0, 3),
        "ranges": [],
        "offset": 1,
        "max_offsets": {Q0: 3},
        "settings": {"fileReservedTime": "72"},
        "recall_handle": "none",
        "progress": {},
        "client_id": "127.0.0.1@1",
        "mode": "PULL",
        "pins": Pins(1),
        "offset_msg_id": "7F00000100002A9F0000000000000000",
        "items": numbers(),
        "listener": lambda messages, context: None,
        "seconds": 5.0,
        "timeout": 0.3,
        "wait": 0.3,
        "perm": Perm.READ | Perm.WRITE,
    }


def arguments_of(one: Any, function: Callable[..., Any]) -> dict[str, Any]:
    """A value for each parameter that needs one."""
    values, arguments = given(), dict[str, Any]()
    if function.__name__ in ("ack", "change_invisible_duration"):
        (received,) = one.receive(max_messages=1)
        values |= {"messages": received, "message": received}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.default is parameter.empty or parameter.name in ("timeout", "wait"):
            assert parameter.name in values, (
                f"{function.__name__}: give its parameter {parameter.name!r} a value in `given` of this file"
            )
            arguments[parameter.name] = values[parameter.name]
    return arguments


def call_of(one: Any, name: str) -> Callable[[], Any]:
    """A call with a value for each parameter that needs one."""
    method = name.split(".")[1]
    if method == "__iter__":
        return lambda: next(iter(one))
    if method == "send_async":
        return lambda: one.send_async(Message("orders", b"x")).result(5)
    if name == "Client.run":
        return lambda: one.run(nothing())
    function = getattr(one, method)
    arguments = arguments_of(one, function)
    if method == "iterate" or method.startswith("read_"):
        return lambda: list(function(**arguments))
    return lambda: function(**arguments)


@types.coroutine
def nothing() -> Iterator[None]:
    """A coroutine that may be left behind without a warning: the caller's own is not closed by a client."""
    yield


async def numbers() -> Any:
    for number in range(3):
        yield number


def tasks() -> int:
    return len(asyncio.all_tasks(LoopThread.of_this_process().loop))


def points_of(name: str, cluster: FakeCluster) -> int:
    """The number of signal points of a call that nothing interrupts."""
    with made(name, cluster) as one, contextlib.suppress(RocketMQError):
        return count_points(call_of(one, name))
    return _POINTS_OF_A_REFUSED_CALL


def interrupt(name: str, cluster: FakeCluster, number: int) -> None:
    """Interrupt a call; then it works, and nothing is left when the object is closed."""
    before = tasks()
    with made(name, cluster) as one:
        with contextlib.suppress(RocketMQError):
            interrupted_at_point(number, call_of(one, name))
        with contextlib.suppress(RocketMQError):
            call_of(one, name)()
    wait_until(lambda: tasks() <= before, seconds=20)


# Points are counted also between making a coroutine and using it, where CPython runs no handler.
no_coroutines = pytest.mark.filterwarnings("ignore:coroutine '.*' was never awaited:RuntimeWarning")


@no_coroutines
@pytest.mark.parametrize("name", METHODS[::EVERY_METHOD])
def test_an_interrupted_method_leaves_a_client_that_works_and_nothing_behind(name, cluster):
    points = range(1, points_of(name, cluster) + 1)
    for number in random.Random(name).sample(points, min(POINTS, len(points))):
        interrupt(name, cluster, number)


@pytest.mark.slow
@no_coroutines
@pytest.mark.parametrize("name", METHODS)
def test_every_point_of_every_method_may_be_interrupted(name, cluster):
    for number in range(1, points_of(name, cluster) + 1):
        interrupt(name, cluster, number)


def bodies_of(attempt: Callable[[int], tuple[bool, Any]]) -> tuple[list[bytes], int]:
    """Get all messages by calls that end early: at a later point each time, until one is not reached.

    Returns:
        The bodies, and the number of calls that ended early.
    """
    got: list[bytes] = []
    interrupts = 0
    while len(got) < COUNT:
        for number in itertools.count(1, EVERY_POINT):
            has_ended_early, result = attempt(number)
            if not has_ended_early:
                break
            interrupts += 1
        assert result, f"messages were lost: only {len(got)} came"
        got += [message.body for message in (result if isinstance(result, list) else [result])]
    return got, interrupts


BODIES = [b"%d" % number for number in range(COUNT)]
READ = {
    "polls": ("PullConsumer.poll", lambda one: partial(one.poll, 5.0)),
    "polls-of-one": ("PullConsumer.poll", lambda one: partial(one.poll, 5.0, 1)),
    "polls-of-many": ("PullConsumer.poll", lambda one: partial(one.poll, 5.0, 25)),
    "iteration": ("PullConsumer.__iter__", lambda one: partial(next, iter(one))),
    "walk-through-a-range": (
        "Client.read_messages",
        lambda one: partial(next, one.read_messages(QueueRange(Q0, 0, COUNT))),
    ),
}
RECEIVED = {
    "receives": ("SimpleConsumer.receive", lambda one: partial(one.receive, max_messages=5, wait=5.0)),
    "iteration-that-receives": ("SimpleConsumer.__iter__", lambda one: partial(next, iter(one))),
}


@pytest.mark.parametrize(
    ("name", "call_of_reader", "order"),
    [
        *(pytest.param(*reader, list, id=key) for key, reader in READ.items()),
        *(pytest.param(*reader, partial(sorted, key=int), id=key) for key, reader in RECEIVED.items()),
    ],
)
def test_wherever_a_call_is_interrupted_each_message_is_returned_once_and_in_order(
    name, call_of_reader, order, cluster
):
    with made(name, cluster) as one:
        call = call_of_reader(one)
        got, interrupts = bodies_of(lambda number: interrupted_at_point(number, call))

    assert order(got) == BODIES
    assert interrupts >= 20 / EVERY_POINT


def is_coroutine(name: str) -> bool:
    owner, method = name.split(".")
    return inspect.iscoroutinefunction(getattr(getattr(aio, owner), method, None))


COROUTINES = [name for name in METHODS if is_coroutine(name) and not name.endswith((".start", ".close"))]


@pytest.mark.parametrize("is_late", [False, True], ids=["at-a-wait", "after-a-wait"])
@pytest.mark.parametrize("name", COROUTINES[::EVERY_METHOD])
def test_a_coroutine_cancelled_at_any_await_leaves_a_client_that_works_and_nothing_behind(
    name, is_late, cluster
):
    before = tasks()
    with made(name, cluster) as one:
        function = getattr(one._asynchronous, name.split(".")[1])
        for number in range(1, 30):
            was_cancelled = False
            coroutine = function(**arguments_of(one, function))
            with contextlib.suppress(RocketMQError):
                was_cancelled, _ = cancelled(one, number, coroutine, is_late=is_late)
            if not was_cancelled:
                break
    wait_until(lambda: tasks() <= before, seconds=20)


def cancelled(one: Any, number: int, coroutine: Any, *, is_late: bool) -> tuple[bool, Any]:
    """Run a coroutine of an object on the loop, and cancel it at its wait with this number."""

    async def run() -> tuple[bool, Any]:
        return await cancelled_at(number, coroutine, is_late=is_late)

    return one._bridge.run(run)


@pytest.mark.parametrize("is_late", [False, True], ids=["at-a-wait", "after-a-wait"])
@pytest.mark.parametrize(
    ("name", "reader_of"),
    [
        pytest.param("PullConsumer.poll", lambda one: partial(one.poll, 5.0, 5), id="poll"),
        pytest.param("PullConsumer.__iter__", lambda one: one.__aiter__().__anext__, id="next"),
        pytest.param(
            "SimpleConsumer.receive",
            lambda one: partial(one.receive, max_messages=5, wait=5.0),
            id="receive",
        ),
        pytest.param("SimpleConsumer.__iter__", lambda one: one.__aiter__().__anext__, id="receive-next"),
    ],
)
def test_wherever_a_coroutine_is_cancelled_each_message_is_returned_once(name, reader_of, is_late, cluster):
    with made(name, cluster) as one:
        read = reader_of(one._asynchronous)
        got, _ = bodies_of(lambda number: cancelled(one, number, read(), is_late=is_late))

    assert sorted(got, key=int) == BODIES
