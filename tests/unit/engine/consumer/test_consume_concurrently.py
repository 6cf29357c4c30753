"""Consumption in any order: results of listeners called by coroutines and on threads."""

import asyncio
import re
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools.engine.consumer import consume_concurrently
from rmqtools.model.codes import RequestCode
from rmqtools.model.consume import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus
from tests.support.scripted_peer import run
from tests.unit.engine.consumer.blocking_scene import (
    PATIENCE,
    Heard,
    blocking,
    in_a_coroutine,
    in_both_ways,
    until,
)
from tests.unit.engine.consumer.push_scene import Scene, idle, pushing, refuses, stored, waits_for

LATER = ConsumeConcurrentlyStatus.RECONSUME_LATER
SEND_BACK = RequestCode.CONSUMER_SEND_MSG_BACK


def sent_back(scene: Scene) -> list[int]:
    return [int(one["offset"]) // 100 for one in scene.asked(SEND_BACK)]


@given(st.permutations(range(12)), st.integers(1, 3))
def test_in_whatever_order_listeners_end_nothing_before_the_first_unfinished_message_is_missed(order, size):
    done = [asyncio.Event() for _ in range(12)]

    async def listen(messages, context):
        for message in messages:
            await done[message.queue_offset].wait()

    async def scenario():
        async with pushing(listen, consume_threads=12, consume_message_batch_max_size=size) as scene:
            scene.arrive(*map(stored, range(12)))
            finished = set()
            for offset in order:
                done[offset].set()
                finished.add(offset)
                await idle(4)
                assert scene.committed is None or set(range(scene.committed)) <= finished
            await until(lambda: scene.committed == 12)
            assert scene.held.count == 0

    run(scenario)


async def test_failed_messages_are_sent_back_with_the_delay_that_was_asked_for_and_count_as_consumed():
    async def listen(messages, context):
        context.delay_level_when_next_consume = 7
        return LATER

    async with pushing(listen, max_reconsume_times=5) as scene:
        scene.arrive(stored(0), stored(1))
        await until(lambda: scene.committed == 2)
        fields = sorted(scene.asked(SEND_BACK), key=lambda one: int(one["offset"]))
        assert [(one["offset"], one["delayLevel"]) for one in fields] == [("0", "7"), ("100", "7")]
        assert {(one["group"], one["originTopic"], one["maxReconsumeTimes"]) for one in fields} == {
            ("g", "T", "5")
        }


async def test_behind_the_ack_index_messages_are_sent_back():
    async def listen(messages, context):
        context.ack_index = 1

    async with pushing(listen, consume_message_batch_max_size=4) as scene:
        scene.arrive(*map(stored, range(4)))
        await until(lambda: scene.committed == 4)
        assert sorted(sent_back(scene)) == [2, 3]


async def test_what_cannot_be_sent_back_is_not_committed_and_comes_again_here_with_a_try_more(monkeypatch):
    monkeypatch.setattr(consume_concurrently, "_TRY_AGAIN_HERE", 0.0)
    tries, committed = [], []

    async def listen(messages, context):
        if messages[0].queue_offset == 1:
            return None
        tries.append(messages[0].reconsume_times)
        committed.append(scene.committed)
        return LATER if len(tries) < 5 else None

    async with pushing(listen, answer=refuses, consume_threads=1) as scene:
        scene.arrive(stored(0), stored(1))
        await until(lambda: scene.committed == 2)
        assert (tries, set(committed)) == ([0, 1, 2, 3, 4], {None, 0})


@in_both_ways
async def test_results_of_a_queue_that_was_given_up_are_neither_committed_nor_sent_back(consuming):
    heard = Heard(0, answer=LATER)

    async with consuming(heard) as scene:
        scene.arrive(stored(0), stored(1))
        await until(heard.reached[0].is_set)
        scene.held.drop()
        heard.go_on.set()
        await until(lambda: not scene.consumption.running)
        assert (scene.committed, sent_back(scene)) == (None, [])


def raises(messages, context):
    raise OSError("disk full")


def cancels_itself(messages, context):
    raise asyncio.CancelledError


def acknowledges_none(messages, context):
    context.ack_index = -1


@in_both_ways
@pytest.mark.parametrize(
    ("failing", "logged"),
    [
        pytest.param(raises, "listener_failed.*OSError.'disk full'.", id="error"),
        pytest.param(cancels_itself, "listener_failed.*CancelledError", id="cancelled"),
        pytest.param(lambda *_: True, "returned True: want None or a ConsumeConcurrentlyStatus", id="bool"),
        pytest.param(lambda *_: ConsumeOrderlyStatus.SUCCESS, "want None or a Consume", id="other-kind"),
        pytest.param(lambda *_: LATER, "", id="later"),
        pytest.param(acknowledges_none, "", id="none-acknowledged"),
    ],
)
async def test_a_failed_message_is_sent_back_alone_and_its_neighbours_are_consumed_once(
    consuming, failing, logged, caplog
):
    heard = []

    def listen(messages, context):
        heard.append(messages[0].queue_offset)
        return failing(messages, context) if heard[-1] == 4 else None

    async with consuming(listen) as scene:
        scene.arrive(*map(stored, range(10)))
        await until(lambda: scene.committed == 10)
        assert sent_back(scene) == [4]
    assert heard == list(range(10))
    assert re.search(logged, caplog.text)


@in_both_ways
async def test_a_message_of_a_topic_without_listener_is_named_and_sent_back_alone(consuming, caplog):
    async with consuming(Heard()) as scene:
        scene.arrive(stored(0), stored(1))
        scene.arrive(stored(2, topic="other"))
        await until(lambda: scene.committed == 3)
        assert sent_back(scene) == [2]
    assert "no listener for topic 'other'" in caplog.text


@in_both_ways
async def test_a_listener_that_takes_too_long_loses_its_own_message_only_and_fails_in_vain(consuming):
    heard = Heard(1, answer=LATER)

    async with consuming(heard, consume_timeout=60.0) as scene:
        scene.arrive(*map(stored, range(4)))
        await until(lambda: heard.reached[1].is_set() and scene.committed == 1)
        scene.clock.advance(59)
        await scene.consumption.give_up_late()
        assert (scene.committed, sent_back(scene)) == (1, [])
        scene.clock.advance(2)
        await scene.consumption.give_up_late()
        await scene.consumption.give_up_late()
        assert (scene.committed, sent_back(scene)) == (2, [1])
        heard.go_on.set()
        await until(lambda: scene.committed == 4)
        assert [(one["offset"], one["delayLevel"]) for one in scene.asked(SEND_BACK)] == [("100", "3")]
    assert heard.offsets == [0, 1, 2, 3]


async def test_messages_of_several_topics_in_the_retry_topic_go_each_to_its_own_listener():
    heard = []

    def hears(name):
        async def listen(messages, context):
            heard.append((name, [message.queue_offset for message in messages]))

        return listen

    def retried(offset, topic):
        return stored(offset, topic="%RETRY%g", RETRY_TOPIC=topic)

    async with pushing(hears("T"), consume_message_batch_max_size=8, consume_threads=1) as scene:
        scene.consumer.subscribe("U", hears("U"))
        scene.arrive(retried(0, "T"), retried(1, "U"), retried(2, "U"), retried(3, "T"))
        await until(lambda: scene.committed == 4)
    assert heard == [("T", [0]), ("U", [1, 2]), ("T", [3])]


@pytest.mark.parametrize("why", ["broadcasting", "given up"])
async def test_nothing_is_taken_from_a_slow_listener_where_nobody_else_would_get_it(why, tmp_path):
    settings: Any = {"message_model": "BROADCASTING", "offset_store_path": str(tmp_path / "offsets.json")}

    async with pushing(waits_for(asyncio.Event()), **(settings if why == "broadcasting" else {})) as scene:
        scene.arrive(stored(0))
        await idle()
        if why == "given up":
            scene.held.drop()
        scene.clock.advance(10_000)
        await scene.consumption.give_up_late()
        assert scene.committed is None
        assert scene.asked(SEND_BACK) == []


async def test_broadcasting_a_failed_message_is_dropped_and_the_log_says_so(tmp_path, caplog):
    settings: Any = {"message_model": "BROADCASTING", "offset_store_path": str(tmp_path / "offsets.json")}
    async with in_a_coroutine(raises, **settings) as scene:
        scene.arrive(stored(0))
        await until(lambda: scene.committed == 1)
        assert scene.asked(SEND_BACK) == []
    assert "messages_dropped_after_failure" in caplog.text


async def test_slow_listeners_run_at_once_on_as_many_threads_as_there_may_be():
    together = threading.Barrier(20)

    def listen(messages, context):
        together.wait(PATIENCE)

    async with blocking(listen, threads=20) as (scene, _):
        scene.arrive(*map(stored, range(40)))
        await until(lambda: scene.committed == 40)
        assert sent_back(scene) == []


@pytest.mark.process
async def test_a_listener_that_was_quick_and_becomes_slow_gets_its_threads_back():
    together, first_slow = threading.Barrier(8), 0

    def listen(messages, context):
        if messages[0].queue_offset >= first_slow:
            together.wait(PATIENCE)

    async with blocking(listen, threads=8) as (scene, pool):
        while pool._width > 1:
            sent = range(first_slow, first_slow + 500)
            first_slow += 500
            for begin in sent[::100]:
                scene.arrive(*map(stored, range(begin, begin + 100)))
            await until(lambda: scene.held.count == 0)
        scene.arrive(*map(stored, range(first_slow, first_slow + 8)))
        await until(lambda: scene.held.count == 0)
        assert (sent_back(scene), scene.committed) == ([], first_slow + 8)
