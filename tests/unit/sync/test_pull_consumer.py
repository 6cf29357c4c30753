"""Polls and iterations on the blocking face hand out what has arrived without the loop thread."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rmqtools import ConsumeFromWhere, MessageExt, MessageQueue, PullConsumer, PullConsumerConfig
from rmqtools.errors import ClientStateError, ConfigError
from rmqtools.sync.loop import Bridge
from rmqtools.testing import FakeCluster
from tests.support.cluster_scene import wait_until

Q0, Q1 = (MessageQueue("orders", "broker-a", number) for number in range(2))
NEVER = 10_000.0  # seconds until an automatic commit
PATIENCE = 30.0


@pytest.fixture
def crossings(monkeypatch) -> list[object]:
    """The coroutines that a blocking call waited for."""
    crossed: list[object] = []
    run_on_loop = Bridge.run
    monkeypatch.setattr(Bridge, "run", lambda self, work: (crossed.append(work), run_on_loop(self, work))[1])
    return crossed


@contextmanager
def reading(
    *queues: MessageQueue, count: int, cached: int | None = None, **settings: Any
) -> Iterator[tuple[FakeCluster, PullConsumer]]:
    """A consumer with these queues assigned; it has fetched ``cached`` messages, or all ``count`` of each."""
    with FakeCluster() as cluster:
        cluster.create_topic("orders", queues=2)
        for queue in queues:
            for number in range(count):
                cluster.store("orders", b"%d" % number, queue=queue)
        given: dict[str, Any] = {
            "name_server": cluster.name_server,
            "group": "g",
            "consume_from": ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
            "auto_commit_interval": NEVER,
        }
        consumer = PullConsumer(PullConsumerConfig(**(given | settings)))
        consumer.assign(queues)
        with consumer:
            wait_until(lambda: fetched(consumer) == (len(queues) * count if cached is None else cached))
            yield cluster, consumer


def fetched(consumer: PullConsumer) -> int:
    return sum(held.count for held in list(consumer._consumer._member.held.pulled.values()))


def offsets(messages: list[MessageExt]) -> list[int]:
    return [message.queue_offset for message in messages]


def polled(consumer: PullConsumer, count: int, size: int | None = None) -> list[int]:
    """The offsets of so many messages, in polls of which none is empty or too large."""
    got: list[int] = []
    while len(got) < count:
        messages = offsets(consumer.poll(PATIENCE, size))
        assert 0 < len(messages) <= (size or count)
        got += messages
    return got


def iterated(consumer: PullConsumer, count: int) -> list[int]:
    return offsets(list(itertools.islice(consumer, count)))


@pytest.mark.process
@pytest.mark.parametrize("read", [polled, iterated])
def test_reads_of_what_has_arrived_cross_threads_once_for_many(crossings, read):
    with reading(Q0, count=500) as (_, consumer):
        crossings.clear()

        assert read(consumer, 500) == list(range(500))
        assert len(crossings) <= 5


def test_queues_take_turns_poll_by_poll():
    with reading(Q0, Q1, count=100) as (_, consumer):
        polls = [consumer.poll(PATIENCE) for _ in range(20)]

    assert [{message.queue_id for message in poll} for poll in polls[:6]] in ([{0}, {1}] * 3, [{1}, {0}] * 3)
    for queue_id in range(2):
        mine = [message for poll in polls for message in poll if message.queue_id == queue_id]
        assert offsets(mine) == list(range(100))


@pytest.mark.parametrize("size", [1, 3, 64, 65, 300])
def test_polls_of_any_size_hand_out_every_message_once(size):
    with reading(Q0, count=300) as (_, consumer):
        assert polled(consumer, 300, size) == list(range(300))


def test_fetching_goes_on_while_polls_take_what_has_arrived():
    few = {"pull_threshold_for_queue": 20, "pull_batch_size": 10}
    with reading(Q0, count=300, cached=30, **few) as (_, consumer):
        assert polled(consumer, 300) == list(range(300))


def test_a_commit_counts_every_poll():
    with reading(Q0, count=100, auto_commit=False) as (cluster, consumer):
        polled(consumer, 70)
        consumer.commit()
        assert (cluster.committed("g", Q0), consumer.position(Q0)) == (70, 70)


@pytest.mark.parametrize(("error", "committed"), [(None, 70), (OSError("disk full"), 60)], ids=str)
def test_leaving_commits_every_poll_but_the_last_one_if_it_is_by_an_error(error, committed):
    with reading(Q0, count=100) as (cluster, consumer):
        polled(consumer, 70)
        consumer.__exit__(error and type(error), error, None)
        assert cluster.committed("g", Q0) == committed


@pytest.mark.parametrize(("read", "committed"), [(polled, 60), (iterated, 69)])
def test_an_automatic_commit_is_made_by_the_read_it_is_due_at(read, committed):
    with reading(Q0, count=100, auto_commit_interval=1e-6) as (cluster, consumer):
        read(consumer, 70)
        wait_until(lambda: cluster.committed("g", Q0) == committed)


def test_a_seek_forgets_what_was_ready():
    with reading(Q0, count=100) as (_, consumer):
        assert offsets(consumer.poll(PATIENCE) + consumer.poll(PATIENCE)) == list(range(20))
        consumer.seek(Q0, 70)
        assert offsets(consumer.poll(PATIENCE)) == list(range(70, 80))
        consumer.seek_to_begin(Q0)
        assert offsets(consumer.poll(PATIENCE)) == list(range(10))


@pytest.mark.parametrize(
    "leave",
    [
        pytest.param(lambda consumer: consumer.pause([Q0]), id="paused"),
        pytest.param(lambda consumer: consumer.assign([Q1]), id="given-up"),
    ],
)
def test_a_queue_that_is_paused_or_given_up_hands_out_nothing_that_was_ready(leave):
    with reading(Q0, Q1, count=100) as (_, consumer):
        consumer.poll(PATIENCE)
        leave(consumer)
        got = [message for _ in range(5) for message in consumer.poll(PATIENCE)]
        assert {message.queue_id for message in got} == {1}


def beaten_once(consumer: PullConsumer, size: int, monkeypatch) -> None:
    """Let another thread begin a poll of this size as soon as the loop has a portion for the first read."""
    make_ready, sizes = consumer._consumer._make_ready, iter([size])

    async def make_ready_and_lose(count: int, seconds: float, *, ahead: int = 0) -> bool:
        is_ready = await make_ready(count, seconds, ahead=ahead)
        for other in sizes:
            await make_ready(other, seconds)
        return is_ready

    monkeypatch.setattr(consumer._consumer, "_make_ready", make_ready_and_lose)


def polled_singly(consumer: PullConsumer, count: int) -> list[int]:
    return polled(consumer, count, 1)


@pytest.mark.parametrize("read", [polled_singly, iterated])
def test_a_larger_poll_of_another_thread_loses_no_message_of_a_read(read, monkeypatch):
    with reading(Q0, count=100) as (_, consumer):
        beaten_once(consumer, 10, monkeypatch)

        assert read(consumer, 50) == list(range(50))


def test_a_poll_is_refused_whatever_is_ready():
    with reading(Q0, count=100) as (_, consumer):
        consumer.poll(PATIENCE)
        with pytest.raises(ConfigError, match="max_messages=0"):
            consumer.poll(PATIENCE, 0)
        consumer.close()
        with pytest.raises(ClientStateError):
            consumer.poll(PATIENCE)
