import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools.engine.consumer import consume_concurrently
from rmqtools.model.codes import RequestCode
from rmqtools.model.consume import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus
from tests.support.scripted_peer import run
from tests.unit.engine.consumer.push_scene import idle, pushing, refuses, stored, until

LATER = ConsumeConcurrentlyStatus.RECONSUME_LATER
SEND_BACK = RequestCode.CONSUMER_SEND_MSG_BACK


@pytest.fixture
def at_once(monkeypatch):
    """Messages that could not be sent back are retried at once."""
    monkeypatch.setattr(consume_concurrently, "_TRY_AGAIN_HERE", 0.0)


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
        assert sorted(one["offset"] for one in scene.asked(SEND_BACK)) == ["200", "300"]


async def test_what_cannot_be_sent_back_is_not_committed_and_comes_again_here_with_a_try_more(at_once):
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


async def test_results_of_a_queue_that_was_given_up_are_neither_committed_nor_sent_back():
    ended = asyncio.Event()

    async def listen(messages, context):
        await ended.wait()
        return LATER

    async with pushing(listen) as scene:
        scene.arrive(stored(0), stored(1))
        await idle()
        scene.held.drop()
        ended.set()
        await until(lambda: not scene.consumption.running)
        assert scene.committed is None
        assert scene.asked(SEND_BACK) == []


async def answers_nonsense(messages, context):
    return True


async def answers_in_order(messages, context):
    return ConsumeOrderlyStatus.SUCCESS


async def raises(messages, context):
    raise OSError("disk full")


async def cancels_itself(messages, context):
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("listener", "reason"),
    [
        pytest.param(answers_nonsense, "returned True: want None or a ConsumeConcurrentlyStatus", id="bool"),
        pytest.param(answers_in_order, "want None or a ConsumeConcurrentlyStatus", id="other-kind"),
        pytest.param(raises, "OSError('disk full')", id="error"),
        pytest.param(cancels_itself, "CancelledError()", id="cancelled"),
    ],
)
async def test_a_listener_that_fails_in_any_way_has_its_messages_sent_back_and_the_log_says_why(
    listener, reason, caplog
):
    async with pushing(listener) as scene:
        scene.arrive(stored(0))
        await until(lambda: scene.committed == 1)
        assert len(scene.asked(SEND_BACK)) == 1
    assert "listener_failed" in caplog.text
    assert reason in caplog.text


async def test_a_context_that_cannot_be_understood_costs_no_message(at_once, caplog):
    calls = []

    async def listen(messages, context):
        calls.append(messages)
        context.ack_index = "all" if len(calls) == 1 else 0

    async with pushing(listen) as scene:
        scene.arrive(stored(0))
        await until(lambda: scene.committed == 1)
    assert len(calls) == 2
    assert "consume_failed" in caplog.text


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


async def test_a_retried_message_of_a_topic_without_listener_is_named_and_sent_back(caplog):
    async with pushing() as scene:
        scene.arrive(stored(0, topic="other"))
        await until(lambda: scene.committed == 1)
        assert len(scene.asked(SEND_BACK)) == 1
    assert "no listener for topic 'other'" in caplog.text


async def test_a_listener_that_takes_too_long_loses_its_messages_to_the_retry_topic_once():
    ended, calls = asyncio.Event(), []

    async def listen(messages, context):
        calls.append(messages)
        await ended.wait()
        return LATER

    async with pushing(listen, consume_timeout=60.0, consume_message_batch_max_size=2) as scene:
        scene.arrive(stored(0), stored(1))
        await idle()
        scene.clock.advance(59)
        await scene.consumption.give_up_late()
        assert scene.committed is None
        scene.clock.advance(2)
        await scene.consumption.give_up_late()
        await scene.consumption.give_up_late()
        assert scene.committed == 2
        ended.set()
        await until(lambda: not scene.consumption.running)
        assert [one["delayLevel"] for one in scene.asked(SEND_BACK)] == ["3", "3"]
    assert len(calls) == 1


@pytest.mark.parametrize("why", ["broadcasting", "given up"])
async def test_nothing_is_taken_from_a_slow_listener_where_nobody_else_would_get_it(why, tmp_path):
    settings: Any = {"message_model": "BROADCASTING", "offset_store_path": str(tmp_path / "offsets.json")}

    async def listen(messages, context):
        await asyncio.Event().wait()

    async with pushing(listen, **(settings if why == "broadcasting" else {})) as scene:
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
    async with pushing(raises, **settings) as scene:
        scene.arrive(stored(0))
        await until(lambda: scene.committed == 1)
        assert scene.asked(SEND_BACK) == []
    assert "messages_dropped_after_failure" in caplog.text


async def test_no_more_listeners_run_at_once_than_there_may_be():
    running, most = set(), []

    async def listen(messages, context):
        running.add(messages[0].queue_offset)
        most.append(len(running))
        await idle(2)
        running.discard(messages[0].queue_offset)

    async with pushing(listen, consume_threads=3) as scene:
        scene.arrive(*map(stored, range(30)))
        await until(lambda: scene.committed == 30)
    assert max(most) == 3


async def test_closing_waits_for_listeners_and_starts_no_other():
    ended, begun = asyncio.Event(), []

    async def listen(messages, context):
        begun.append(messages[0].queue_offset)
        await ended.wait()

    async with pushing(listen, consume_threads=1) as scene:
        scene.arrive(stored(0), stored(1))
        await idle()
        closing = asyncio.create_task(scene.consumption.close(5.0))
        await idle()
        assert not closing.done()
        ended.set()
        await closing
        assert (begun, scene.committed) == ([0], 1)


async def test_a_listener_that_outlasts_the_closing_is_left_alone_and_its_messages_come_again(caplog):
    async def listen(messages, context):
        await asyncio.Event().wait()

    async with pushing(listen) as scene:
        scene.arrive(stored(0))
        await idle()
        await scene.consumption.close(0.01)
        assert scene.committed is None
    assert "listeners_still_running group='g' count=1" in caplog.text
