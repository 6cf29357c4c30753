"""The life of a member: what it needs of its servers before it joins, its rounds, its loops."""

import asyncio
from contextlib import asynccontextmanager, suppress

import pytest

from rmqtools import Client, ClientConfig, PushConsumer, PushConsumerConfig, QueueRange, aio
from rmqtools.allocate import AllocateAveragely, AllocateByPins, Pins
from rmqtools.config.consumer import ConsumerConfig
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.group import ownership
from rmqtools.engine.group.live_strategy import LiveStrategy
from rmqtools.engine.group.ownership import Rounds
from rmqtools.errors import RemotingConnectError, UnsupportedError
from rmqtools.model.codes import RequestCode
from rmqtools.model.queue import MessageQueue
from rmqtools.testing import FakeCluster
from tests.support.behind_proxy import show_as_proxy, show_version
from tests.support.fake import Fake
from tests.unit.engine.consumer.push_scene import idle, pushing, until


async def listen(messages, context) -> None: ...


def push(cluster: FakeCluster, *, strategy=None, sql=None, **settings) -> PushConsumer:
    config = PushConsumerConfig(name_server=cluster.name_server, group="g", **settings)
    consumer = PushConsumer(config, strategy=strategy or AllocateAveragely())
    consumer.subscribe("T", lambda messages, context: None, sql=sql)
    return consumer


def show_old_brokers(cluster: FakeCluster) -> None:
    cluster.create_topic("T")
    show_version(cluster, "4.9.7")


@pytest.mark.parametrize(
    ("show", "wanted", "text"),
    [
        pytest.param(
            show_as_proxy,
            {"strategy": AllocateByPins(when_absent="nobody")},
            "pins of a group.*proxy.*AllocatePinnedByIp",
            id="pins-proxy",
        ),
        pytest.param(
            show_as_proxy,
            {"client_rebalance": False},
            "client_rebalance=False.*proxy.*client_rebalance=True",
            id="shares-proxy",
        ),
        pytest.param(
            show_old_brokers,
            {"client_rebalance": False},
            "since 5.0.0, and broker-a.* 4.9.7; set client_rebalance=True",
            id="shares-old-brokers",
        ),
        pytest.param(show_as_proxy, {"sql": "a = 1"}, "conditions.*proxy.*use tags", id="condition-proxy"),
    ],
)
def test_what_the_servers_do_not_offer_is_refused_before_the_group_is_joined(show, wanted, text):
    with FakeCluster() as cluster:
        show(cluster)
        consumer = push(cluster, **wanted)
        with pytest.raises(UnsupportedError, match=text):
            consumer.start()
        consumer.close()
        assert cluster.requests(code=RequestCode.HEART_BEAT) == []


async def test_a_broker_that_is_away_does_not_keep_a_member_from_starting(caplog):
    async with FakeCluster() as cluster:
        cluster.create_topic("T")
        cluster.fault(code=RequestCode.GET_BROKER_RUNTIME_INFO, answer=None)
        config = PushConsumerConfig(name_server=cluster.name_server, group="g", client_rebalance=False)
        consumer = aio.PushConsumer(config)
        consumer.subscribe("T", listen)
        async with consumer:
            assert "broker_version_unknown" in caplog.text


def test_a_condition_through_a_proxy_is_refused_to_a_running_member_and_to_a_range_read():
    with FakeCluster() as cluster:
        show_as_proxy(cluster)
        with push(cluster) as consumer, pytest.raises(UnsupportedError, match="conditions"):
            consumer.subscribe("U", lambda messages, context: None, sql="a = 1")
        with Client(ClientConfig(name_server=cluster.name_server)) as client:
            whole = QueueRange(MessageQueue("T", "broker-a", 0), 0, 1)
            with pytest.raises(UnsupportedError, match="conditions"):
                list(client.read_messages(whole, sql="a = 1"))


CONFIG = ConsumerConfig(
    name_server="127.0.0.1:1", group="g", rebalance_interval=60.0, rebalance_min_interval=2.0
)


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
async def running(rebalance, *, strategy=None):
    live = LiveStrategy(strategy or AllocateAveragely(), ClientCore(CONFIG), "g")
    rounds = Rounds(rebalance, live, CONFIG)
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


async def test_while_queues_are_not_shared_as_they_should_be_rounds_come_sooner():
    async with running(Rebalances(False, False, True)) as rounds:
        await asyncio.sleep(3)
        assert rounds.count == 2
        await asyncio.sleep(2)
        assert rounds.count == 3
        await asyncio.sleep(10)
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


@pytest.mark.parametrize("late", [Pins(3, ["10.0.0.3"]), None], ids=["older", "none"])
async def test_an_older_answer_that_comes_late_does_not_replace_newer_pins(late):
    newer, asked, go_on = Pins(7, ["10.0.0.7"]), asyncio.Event(), asyncio.Event()

    class PinAnswers(Fake):
        async def fetch(self, group, last):
            if asked.is_set():
                return newer
            asked.set()
            await go_on.wait()
            return late

    live = LiveStrategy(AllocateByPins(when_absent="nobody"), ClientCore(CONFIG), "g")
    live._store = PinAnswers()
    slow = asyncio.create_task(live.refresh())
    await asked.wait()
    assert await live.refresh()
    go_on.set()
    await slow
    live.now()
    assert live.pins == newer


@pytest.mark.parametrize(("part", "work"), [("held", "renew_locks"), ("offsets", "persist")])
async def test_locks_are_renewed_and_offsets_persisted_again_after_an_error_nobody_foresaw(
    part, work, monkeypatch, caplog
):
    tries = []

    async def fail(*_):
        tries.append(1)
        raise KeyError("foreseen by nobody")

    monkeypatch.setattr(ownership, "LOCK_INTERVAL", 5.0)
    async with pushing(orderly=True) as scene:
        monkeypatch.setattr(getattr(scene.member, part), work, fail)
        scene.ownership._spawn_loops()
        await asyncio.sleep(14)
    assert len(tries) == 2
    assert "foreseen by nobody" in caplog.text
