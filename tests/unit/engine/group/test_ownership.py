"""What a member needs of its servers is looked at before it joins its group."""

import asyncio
from contextlib import asynccontextmanager, suppress

import pytest

from rmqtools import (
    Client,
    ClientConfig,
    PullConsumer,
    PullConsumerConfig,
    PushConsumer,
    PushConsumerConfig,
    QueueRange,
)
from rmqtools.allocate import AllocateAveragely, AllocateByPins, Pins
from rmqtools.config.consumer import ConsumerConfig
from rmqtools.engine.connection import background
from rmqtools.engine.connection.background import Background
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.group.live_strategy import LiveStrategy
from rmqtools.engine.group.ownership import Rounds
from rmqtools.errors import RemotingConnectError, UnsupportedError
from rmqtools.model.codes import RequestCode
from rmqtools.model.queue import MessageQueue
from rmqtools.testing import FakeCluster
from tests.support.behind_proxy import show_as_proxy, show_version
from tests.support.fake import Fake
from tests.unit.engine.consumer.push_scene import idle, until


def push(cluster: FakeCluster, *, strategy=None, sql=None, **settings) -> PushConsumer:
    config = PushConsumerConfig(name_server=cluster.name_server, group="g", **settings)
    consumer = PushConsumer(config, strategy=strategy) if strategy else PushConsumer(config)
    consumer.subscribe("T", lambda messages, context: None, sql=sql)
    return consumer


def refused(consumer, text: str) -> None:
    with pytest.raises(UnsupportedError, match=text):
        consumer.start()
    consumer.close()


def test_pins_through_a_proxy_are_refused_at_the_start():
    with FakeCluster() as cluster:
        show_as_proxy(cluster)

        refused(
            push(cluster, strategy=AllocateByPins(when_absent="nobody")),
            "pins of a group.*proxy.*AllocatePinnedByIp",
        )
        assert cluster.requests(code=RequestCode.HEART_BEAT) == []


def test_queues_shared_out_by_brokers_are_refused_at_the_start_through_a_proxy():
    with FakeCluster() as cluster:
        show_as_proxy(cluster)

        refused(push(cluster, client_rebalance=False), "client_rebalance=False.*proxy.*client_rebalance=True")


def test_queues_shared_out_by_brokers_are_refused_at_the_start_by_brokers_that_cannot():
    with FakeCluster() as cluster:
        cluster.create_topic("T")
        show_version(cluster, "4.9.7")

        refused(
            push(cluster, client_rebalance=False),
            "since 5.0.0, and broker-a.* 4.9.7; set client_rebalance=True",
        )


@pytest.mark.process
def test_a_broker_that_is_away_does_not_keep_a_member_from_starting(caplog):
    with FakeCluster() as cluster:
        cluster.create_topic("T")
        cluster.fault(code=RequestCode.GET_BROKER_RUNTIME_INFO, answer=None)

        with push(cluster, client_rebalance=False, request_timeout=0.1):
            assert "broker_version_unknown" in caplog.text


def test_a_condition_through_a_proxy_is_refused_at_the_start():
    with FakeCluster() as cluster:
        show_as_proxy(cluster)

        refused(push(cluster, sql="a = 1"), "conditions.*proxy.*use tags")


def test_a_condition_through_a_proxy_is_refused_when_a_running_member_wants_it():
    with FakeCluster() as cluster:
        show_as_proxy(cluster)
        consumer = PullConsumer(PullConsumerConfig(name_server=cluster.name_server, group="g"))
        consumer.subscribe("T")
        with consumer, pytest.raises(UnsupportedError, match="conditions"):
            consumer.subscribe("U", sql="a = 1")


def test_a_range_is_not_read_by_a_condition_through_a_proxy():
    with FakeCluster() as cluster, Client(ClientConfig(name_server=cluster.name_server)) as client:
        show_as_proxy(cluster)
        whole = QueueRange(MessageQueue("T", "broker-a", 0), 0, 1)
        with pytest.raises(UnsupportedError, match="conditions"):
            list(client.read_messages(whole, sql="a = 1"))


CONFIG = ConsumerConfig(name_server="127.0.0.1:1", group="g", rebalance_interval=60.0)


class Rebalances(Fake):
    """Stands in for a consumer's rebalance: counts rounds, with scripted results."""

    must_try_again = False

    def __init__(self, *answers: bool | Exception) -> None:
        self.answers = list(answers)
        self.strategies: list[object] = []
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def run(self, strategy) -> bool:
        self.strategies.append(strategy)
        await self.go_on.wait()
        answer = self.answers.pop(0) if self.answers else True
        if isinstance(answer, Exception):
            raise answer
        return answer


@asynccontextmanager
async def running(rebalance, *, strategy=None, config=CONFIG):
    live = LiveStrategy(strategy or AllocateAveragely(), ClientCore(config), "g")
    rounds = Rounds(rebalance, live, config)
    task = asyncio.create_task(rounds.run_forever())
    try:
        await rounds.first()
        yield rounds
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_requests_that_come_while_a_round_runs_make_one_more_together():
    rebalance = Rebalances()
    async with running(rebalance) as rounds:
        rebalance.go_on.clear()
        rounds.request()
        await until(lambda: len(rebalance.strategies) == 2)
        for _ in range(10):
            rounds.request()
        rebalance.go_on.set()
        await until(lambda: len(rebalance.strategies) == 3)
        await idle()
        assert rounds.count == 3


async def test_while_locks_are_refused_rounds_come_half_a_second_after_each_other_at_the_earliest():
    rebalance = Rebalances(*[False] * 5)
    rebalance.must_try_again = True
    now = asyncio.get_running_loop().time
    async with running(rebalance) as rounds:
        began = now()
        await until(lambda: rounds.count == 5)
        assert now() - began == pytest.approx(2.0, abs=0.1)
        rebalance.must_try_again = False
        rounds.request()
        await until(lambda: rounds.count == 6)
        await asyncio.sleep(10)
        assert rounds.count == 6


async def test_while_queues_are_not_shared_as_they_should_be_rounds_come_sooner():
    config = ConsumerConfig(
        name_server="127.0.0.1:1", group="g", rebalance_interval=60.0, rebalance_min_interval=0.001
    )
    async with running(Rebalances(False, False, True), config=config) as rounds:
        await until(lambda: rounds.count == 3)
        await asyncio.sleep(0.01)
        assert rounds.count == 3


@pytest.mark.parametrize("error", [RemotingConnectError("nobody there"), KeyError("foreseen by nobody")])
async def test_a_round_that_fails_is_logged_and_does_not_end_the_rounds(error, caplog):
    async with running(Rebalances(error)) as rounds:
        rounds.request()
        await until(lambda: rounds.count == 2)

    assert "rebalance_failed" in caplog.text


class Pinned(AllocateAveragely):
    """Wants pins, and does not take them."""

    def with_pins(self, pins):
        raise RuntimeError("no pins, please")


async def test_a_strategy_that_fails_with_its_pins_does_not_end_the_rounds(caplog):
    rebalance = Rebalances()
    async with running(rebalance, strategy=Pinned()) as rounds:
        rounds.request()
        await until(lambda: rounds.count == 2)
        assert rebalance.strategies == []

    assert "no pins, please" in caplog.text


class PinAnswers(Fake):
    """Stands where pins are fetched: the first answer comes when it is let go, the others at once."""

    def __init__(self, first: Pins | None, *others: Pins | None) -> None:
        self._others = list(others)
        self._first = first
        self.go_on = asyncio.Event()
        self.asked = 0

    async def fetch(self, group, last):
        self.asked += 1
        if self.asked > 1:
            return self._others.pop(0)
        await self.go_on.wait()
        return self._first


@pytest.mark.parametrize("late", [Pins(3, ["10.0.0.3"]), None], ids=["older", "none"])
async def test_an_older_answer_that_comes_late_does_not_replace_newer_pins(late):
    newer = Pins(7, ["10.0.0.7"])

    live = LiveStrategy(AllocateByPins(when_absent="nobody"), ClientCore(CONFIG), "g")
    live._store = answers = PinAnswers(late, newer)
    slow = asyncio.create_task(live.refresh())
    await until(lambda: answers.asked)
    assert await live.refresh()
    answers.go_on.set()
    await slow
    live.now()
    assert live.pins == newer


async def test_pins_are_watched_on_after_an_error_nobody_foresaw(monkeypatch, caplog):
    monkeypatch.setattr(background, "PAUSE_AFTER_ERROR", 0.001)
    tries = []
    config = ConsumerConfig(name_server="127.0.0.1:1", group="g", pin_poll_interval=0.001)

    async def fail():
        tries.append(1)
        raise KeyError("foreseen by nobody")

    live = LiveStrategy(AllocateAveragely(), ClientCore(config), "g")
    monkeypatch.setattr(live, "refresh", fail)
    owner, rounds = Background(), Rounds(Rebalances(), live, config)
    owner.spawn_repeated("watch_pins", config.pin_poll_interval, rounds.watch_pins)
    await until(lambda: len(tries) > 1)
    await owner.stop()
    assert "foreseen by nobody" in caplog.text
