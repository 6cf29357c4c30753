import asyncio

import pytest

from rmqtools.engine.connection import background
from rmqtools.engine.group.pop_process_queue import PopProcessQueue
from rmqtools.engine.group.process_queue import ProcessQueue
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.queue import MessageQueue
from rmqtools.protocol.wire.command import response
from tests.support.scripted_peer import ScriptedPeer
from tests.unit.engine.consumer.pull_script import PULL, answered, asked_offsets, found, pulls, script
from tests.unit.engine.consumer.push_scene import QUEUE, Scene, idle, pushing, stored, until, waits_for


async def test_a_pull_says_what_is_consumed_and_what_is_wanted():
    """The offset comes along when the broker has one of the topic: its first two at a time would be one."""

    async with pushing(answer=script(found(0)), pull_batch_size=7, long_poll_timeout=4.0) as scene:
        scene.member.offsets.update(QUEUE, 5)
        assert scene.fetching.offset_for_pull(QUEUE) is None
        await scene.member.offsets.persist([QUEUE])
        await pulls(scene, 1)
        fields = scene.asked(PULL)[0]
        assert (fields["commitOffset"], fields["maxMsgNums"], fields["suspendTimeoutMillis"]) == (
            "5",
            "7",
            "4000",
        )
        assert int(fields["sysFlag"]) == 0b111  # commit, wait, with the subscription
        assert fields["subscription"] == "*"


async def test_tags_that_only_hash_alike_are_passed_over_and_count_as_consumed():
    answers = script(found(0, 1, tags="BB"), answered(ResponseCode.PULL_RETRY_IMMEDIATELY, 9))
    async with pushing(answer=answers) as scene:
        scene.member.subscriptions.want("T", tags="Aa")
        await pulls(scene, 3)
        assert (asked_offsets(scene), scene.committed, scene.heard) == ([0, 2, 9], 9, [])


async def test_what_is_passed_over_is_not_committed_while_something_before_it_is_consumed():
    answers = script(found(0), answered(ResponseCode.PULL_NOT_FOUND, 50))
    async with pushing(waits_for(asyncio.Event()), answer=answers) as scene:
        await pulls(scene, 3)
        assert (asked_offsets(scene)[-1], scene.committed) == (50, None)


async def test_other_tags_wanted_while_a_broker_holds_the_pull_are_asked_for_at_the_same_offset():
    def meanwhile(request):
        scene.member.subscriptions.want("T", tags="new")
        return found(0, 1, 2, tags="old")

    async with pushing(answer=script(meanwhile)) as scene:
        await pulls(scene, 2)
        assert asked_offsets(scene) == [0, 0]
        assert scene.asked(PULL)[1]["subscription"] == "new"
        assert (scene.heard, scene.committed) == ([], None)


@pytest.mark.parametrize(
    ("moved_to", "range_"),
    [pytest.param(300, (300, 1000), id="removed-by-age"), pytest.param(4, (0, 4), id="lost-with-a-master")],
)
async def test_a_place_that_is_not_stored_is_left_after_what_was_fetched_before(moved_to, range_, caplog):
    ended = asyncio.Event()

    moved = answered(ResponseCode.PULL_OFFSET_MOVED, moved_to, stored=range_)
    async with pushing(waits_for(ended), answer=script(found(8, 9), moved)) as scene:
        scene.held.next_offset = 8
        await pulls(scene, 2)
        await idle()
        assert (len(scene.asked(PULL)), scene.held.is_dropped) == (2, False)
        ended.set()
        await pulls(scene, 3)
        assert (asked_offsets(scene)[-1], scene.committed) == (moved_to, moved_to)
        fresh = scene.member.held.pulled[QUEUE]
        fresh.put([stored(moved_to)])
        fresh.take(1)
        assert fresh.commit() == moved_to + 1
        fresh.drop()
    assert "pull_offset_moved" in caplog.text


async def test_after_a_reset_by_an_administrator_what_was_fetched_before_is_not_committed():
    ended = asyncio.Event()

    reset = answered(ResponseCode.PULL_OFFSET_MOVED, 2)
    async with pushing(waits_for(ended), answer=script(found(8, 9), reset)) as scene:
        scene.held.next_offset = 8
        await pulls(scene, 3)
        ended.set()
        await idle()
        assert (asked_offsets(scene)[-1], scene.committed) == (2, 2)
        scene.member.held.pulled[QUEUE].drop()


async def test_a_reset_counts_although_other_tags_were_wanted_while_its_pull_was_out():
    """The broker reports it only once."""

    def meanwhile(request):
        scene.member.subscriptions.want("T", tags="new")
        return answered(ResponseCode.PULL_OFFSET_MOVED, 2)

    async with pushing(answer=script(meanwhile)) as scene:
        scene.held.next_offset = 8
        await pulls(scene, 2)
        assert (asked_offsets(scene), scene.committed) == ([8, 2], 2)
        scene.member.held.pulled[QUEUE].drop()


async def test_a_queue_that_is_moved_after_the_puller_has_closed_is_fetched_no_more():
    async with pushing() as scene:
        await scene.puller.close()
        scene.member.held.move(scene.held, 2, note=True)
        assert (scene.puller.running, scene.committed) == (0, 2)
        scene.member.held.pulled[QUEUE].drop()


@pytest.mark.parametrize(
    ("code", "seconds"),
    [
        (ResponseCode.FLOW_CONTROL, 0.020),
        (ResponseCode.SYSTEM_BUSY, 0.020),
        (ResponseCode.SUBSCRIPTION_NOT_EXIST, 0.5),
        (ResponseCode.SUBSCRIPTION_NOT_LATEST, 0.5),
        (ResponseCode.SYSTEM_ERROR, 3.0),
        (ResponseCode.NO_PERMISSION, 3.0),
        (ResponseCode.TOPIC_NOT_EXIST, 3.0),
    ],
)
async def test_after_an_error_a_queue_rests_as_long_as_its_code_wants(code, seconds):
    async with pushing(answer=script(response(code, 0, remark="no"))) as scene:
        await pulls(scene, 1)
        await until(lambda: scene.puller.running and scene.is_resting)
        await scene.pass_time(seconds * 0.9)
        assert len(scene.asked(PULL)) == 1
        await scene.pass_time(seconds * 0.4)  # with the jitter
        await pulls(scene, 2)
        assert asked_offsets(scene) == [0, 0]


QUEUES = [MessageQueue("T", "broker-a", number) for number in range(8)]


def start_pulls(scene: Scene) -> None:
    for queue in QUEUES:
        scene.puller.start(ProcessQueue(queue, scene.clock, 0))


def start_pops(scene: Scene) -> None:
    for queue in QUEUES:
        scene.popper.start(PopProcessQueue(queue, scene.clock))


of_both_kinds = pytest.mark.parametrize(
    ("start", "code"),
    [(start_pulls, PULL), (start_pops, RequestCode.POP_MESSAGE)],
    ids=["pulled", "popped"],
)


@of_both_kinds
async def test_a_broker_that_has_forgotten_this_member_is_told_once_for_all_its_queues(start, code):
    def answer(request):
        return response(ResponseCode.SUBSCRIPTION_NOT_EXIST if request.code == code else 0, 0)

    async with pushing(answer=answer) as scene:
        start(scene)
        await until(lambda: len(scene.asked(code)) >= 8 and scene.asked(RequestCode.HEART_BEAT))
        await idle()
        assert len(scene.asked(RequestCode.HEART_BEAT)) == 1
        await scene.popper.close()


async def fails(*_: object) -> None:
    raise KeyError("foreseen by nobody")


@of_both_kinds
async def test_a_queue_is_fetched_on_after_an_error_in_the_handling_of_another(
    start, code, monkeypatch, caplog
):
    def answer(request):
        return response(ResponseCode.SUBSCRIPTION_NOT_EXIST if request.code == code else 0, 0)

    monkeypatch.setattr(background, "PAUSE_AFTER_ERROR", 0.001)
    async with pushing(answer=answer) as scene:
        monkeypatch.setattr(scene.client, "send_heartbeat", fails)
        start(scene)
        await until(lambda: len(scene.asked(code)) > len(QUEUES))
        await scene.popper.close()
    assert "background_loop_failed" in caplog.text


async def test_an_error_nobody_foresaw_stops_no_queue_for_good(monkeypatch, caplog):
    async with pushing(answer=script(found(0), found(0)), delay_after_error=0.001) as scene:
        fetched, scene.fetching.fetched = scene.fetching.fetched, None
        await pulls(scene, 1)
        await until(lambda: "pull_failed" in caplog.text)
        scene.fetching.fetched = fetched
        scene.held.take(1)
        scene.held.commit()
        scene.held.next_offset = 0
        scene.clock.advance(1)
        await until(lambda: scene.heard == [[0]])


async def test_a_slave_is_asked_when_the_master_is_dead_and_stays_until_the_master_may_be_back():
    slave = ScriptedPeer(script(found(0, suggest=0), found(1, suggest=0), found(2, suggest=0)))
    async with slave.serving(), pushing(delay_after_error=0.001) as scene:
        addrs = scene.client.routes.tables.broker_addrs
        addrs["broker-a"] = {0: "127.0.0.1:1", 1: slave.addr}
        scene.member.offsets.update(QUEUE, 5)
        scene.puller.start(scene.held)
        await until(lambda: scene.is_resting)
        scene.clock.advance(1)
        await until(lambda: len(slave.requests) == 4)
        assert scene.heard == [[0], [1], [2]]
        assert not any(int(one.ext_fields["sysFlag"] or "") & 1 for one in slave.requests)  # no commit


async def test_when_the_master_may_be_back_the_slaves_suggestion_is_followed():
    def late(request):
        scene.clock.advance(31)
        return found(0, suggest=0)

    slave = ScriptedPeer(script(late))
    async with slave.serving(), pushing(delay_after_error=0.001, answer=script(found(1))) as scene:
        addrs = scene.client.routes.tables.broker_addrs
        addrs["broker-a"] = {0: "127.0.0.1:1", 1: slave.addr}
        scene.puller.start(scene.held)
        await until(lambda: scene.is_resting)
        addrs["broker-a"] = {0: scene.broker.addr, 1: slave.addr}
        scene.puller._unanswered[scene.broker.addr] = scene.clock.monotonic()
        scene.clock.advance(1)
        await until(lambda: scene.heard == [[0], [1]])
        assert len(slave.requests) == 1


@pytest.mark.parametrize(
    "limit",
    [
        {"pull_threshold_for_queue": 4},
        {"pull_threshold_bytes_for_queue": 4},
        {"consume_concurrently_max_span": 3},
        {"pull_threshold_for_topic": 4},
    ],
)
async def test_while_listeners_are_slow_no_more_is_held_than_the_limit_and_one_pull(limit):
    ended = asyncio.Event()

    answers = script(*(found(start, start + 1, start + 2) for start in range(0, 30, 3)))
    async with pushing(waits_for(ended), answer=answers, **limit) as scene:
        await pulls(scene, 2)
        await idle()
        assert (len(scene.asked(PULL)), scene.held.count) == (2, 6)
        ended.set()
        await pulls(scene, 11)


async def test_a_member_holds_no_more_bytes_than_the_limit_of_all_its_queues_and_one_answer():
    ended = asyncio.Event()
    answers = script(found(0, 1, 2), found(3))
    async with pushing(waits_for(ended), answer=answers, pull_threshold_bytes_for_topic=2) as scene:
        await pulls(scene, 1)
        await until(lambda: scene.held.count == 3)
        await idle()
        assert len(scene.asked(PULL)) == 1
        ended.set()
        await pulls(scene, 2)


@of_both_kinds
async def test_a_suspended_consumer_asks_for_nothing_until_it_is_resumed(start, code):
    async with pushing(answer=lambda request: None if request.code == code else response(0, 0)) as scene:
        scene.consumer.suspend()
        start(scene)
        await idle()
        assert scene.asked(code) == []
        scene.consumer.resume()
        await until(lambda: len(scene.asked(code)) == len(QUEUES))
        await scene.popper.close()


async def test_a_topic_that_is_unsubscribed_is_not_asked_for_any_more_before_its_queues_are_given_up():
    def meanwhile(request):
        scene.consumer.unsubscribe("T")
        return found(0, tags="old")

    async with pushing(answer=script(meanwhile)) as scene:
        scene.member.subscriptions.want("T", tags="new")
        await pulls(scene, 1)
        await idle(200)
        assert not scene.held.is_dropped
        assert (asked_offsets(scene), scene.heard) == ([0], [])
