import asyncio
from contextlib import asynccontextmanager

import pytest

from rmqtools.errors import BrokerError, RemotingError
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.queue import MessageQueue
from rmqtools.protocol.wire.command import encode_command, response
from tests.support.scripted_peer import ScriptedPeer
from tests.unit.engine.consumer.push_scene import QUEUE, Scene, agrees, idle, pushing, refuses, until

UPDATE = RequestCode.UPDATE_CONSUMER_OFFSET
SECOND = MessageQueue("T", "broker-a", 1)
ELSEWHERE = [MessageQueue("T", "broker-b", number) for number in range(3)]


def told(scene: Scene) -> list[str]:
    """The offsets that the scene's broker was told, in order."""
    return [one["commitOffset"] for one in scene.asked(UPDATE)]


@asynccontextmanager
async def beside_a_paused_broker(*, disconnects: bool = True):
    """A scene, and a broker-b that answers no request; it hangs up instead, or lets all wait."""
    async with (
        ScriptedPeer(agrees if disconnects else None, disconnects=disconnects).serving() as paused,
        pushing() as scene,
    ):
        scene.client.routes.tables.broker_addrs["broker-b"] = {0: paused.addr}
        for queue in ELSEWHERE:
            scene.member.offsets.update(queue, 3)
        yield scene, paused


async def test_an_offset_that_a_pull_may_set_back_is_stored_once_more():
    async with pushing() as scene:
        store = scene.member.offsets
        store.update(QUEUE, 5)
        await store.persist([QUEUE])
        assert store.offset_for_pull(QUEUE) == 5  # the broker may be slow to handle this pull
        store.update(QUEUE, 6)
        assert store.offset_for_pull(QUEUE) == 6
        for _ in range(3):
            await store.persist([QUEUE])
        assert told(scene) == ["5", "6", "6"]


async def test_the_next_offset_waits_for_the_answer_to_a_request_that_was_cut_off():
    waiting = []

    def answer(request):
        waiting.append(request)
        return None if len(waiting) == 1 else agrees(request)

    async with pushing(answer=answer) as scene:
        store = scene.member.offsets
        store.update(QUEUE, 5)
        cut_off = asyncio.create_task(store.persist([QUEUE]))
        await until(lambda: waiting)
        cut_off.cancel()
        await idle()
        store.update(QUEUE, 6)
        persisting = asyncio.create_task(store.persist([QUEUE]))
        await idle()
        assert told(scene) == ["5"]

        await scene.broker.say(encode_command(response(ResponseCode.SUCCESS, waiting[0].opaque)))
        await persisting

        assert told(scene) == ["5", "6"]


async def test_pulls_that_carry_what_is_stored_make_no_commit():
    async with pushing() as scene:
        store = scene.member.offsets
        store.update(QUEUE, 5)
        for _ in range(3):
            await store.persist([QUEUE])
            store.offset_for_pull(QUEUE)
        assert told(scene) == ["5"]


async def test_what_was_not_stored_is_stored_the_next_time_and_the_log_says_so(caplog):
    answers = [refuses]

    def answer(request):
        return answers.pop()(request) if answers else response(ResponseCode.SUCCESS, 0)

    async with pushing(answer=answer) as scene:
        scene.member.offsets.update(QUEUE, 5)
        await scene.member.offsets.persist([QUEUE])
        await scene.member.offsets.persist([QUEUE])
        assert told(scene) == ["5", "5"]
    assert "consumer_offset_not_stored" in caplog.text


async def test_an_offset_may_be_kept_from_going_back_and_may_go_back():
    async with pushing() as scene:
        store = scene.member.offsets
        for offset, increase_only, kept in [(5, True, 5), (3, True, 5), (3, False, 3), (4, True, 4)]:
            store.update(QUEUE, offset, increase_only=increase_only)
            assert store.read_memory(QUEUE) == kept
        store.remove(QUEUE)
        assert store.noted() == {}


@pytest.mark.parametrize(
    ("answer", "offset", "noted"),
    [
        pytest.param(response(0, 0, ext_fields={"offset": "17"}), 17, {QUEUE: 17}, id="one"),
        pytest.param(response(ResponseCode.QUERY_NOT_FOUND, 0), None, {}, id="none"),
        pytest.param(response(0, 0, ext_fields={"offset": "-1"}), -1, {}, id="negative"),
    ],
)
async def test_an_offset_that_a_broker_has_is_noted_unless_it_is_negative_and_not_stored_again(
    answer, offset, noted
):
    async with pushing(answer=lambda request: answer) as scene:
        assert await scene.member.offsets.read_store(QUEUE) == offset
        assert scene.member.offsets.noted() == noted
        await scene.member.offsets.persist([QUEUE])
        assert told(scene) == []


async def test_a_broker_that_cannot_tell_the_offset_is_an_error_never_no_offset():
    async with pushing(answer=refuses) as scene:
        with pytest.raises(BrokerError, match="scripted"):
            await scene.member.offsets.read_store(QUEUE)


async def test_a_broker_that_is_paused_keeps_no_offsets_of_others_waiting():
    async with beside_a_paused_broker(disconnects=False) as (scene, paused):
        waiting = asyncio.create_task(scene.member.offsets.persist(ELSEWHERE))
        await until(lambda: paused.requests)
        scene.member.offsets.update(SECOND, 4)
        await scene.member.offsets.commit({QUEUE: 5})
        await scene.member.offsets.persist([SECOND])
        assert not waiting.done()
        assert told(scene) == ["5", "4"]
        waiting.cancel()


async def test_a_broker_that_does_not_answer_is_asked_for_one_queue_and_the_rest_stays_due(caplog):
    async with beside_a_paused_broker() as (scene, paused):
        await scene.member.offsets.persist(ELSEWHERE)
        assert len(paused.requests) == 1
        paused.disconnects = False
        await scene.member.offsets.persist(ELSEWHERE)
        assert [one.ext_fields["queueId"] for one in paused.requests] == ["0", "0", "1", "2"]
    assert "consumer_offset_not_stored" in caplog.text


async def test_who_waited_for_a_broker_that_did_not_answer_leaves_its_offsets_for_the_next_time():
    async with beside_a_paused_broker() as (scene, paused):
        await asyncio.gather(*(scene.member.offsets.persist([queue]) for queue in ELSEWHERE))
        assert len(paused.requests) == 1


async def test_a_commit_ends_at_the_first_queue_that_its_broker_does_not_answer_for():
    async with beside_a_paused_broker() as (scene, paused):
        with pytest.raises(RemotingError):
            await scene.member.offsets.commit(dict.fromkeys([*ELSEWHERE, QUEUE], 5))
        assert len(paused.requests) == 1
        assert told(scene) == ["5"]


async def test_offsets_of_one_broker_are_told_one_after_the_other_whoever_tells_them():
    async with pushing(answer=lambda request: None) as scene:
        commit = scene.member.offsets.commit
        telling = [asyncio.create_task(commit({queue: 5})) for queue in (QUEUE, SECOND)]
        await until(lambda: told(scene))
        await idle()
        assert told(scene) == ["5"]
        for one in telling:
            one.cancel()


async def test_a_broker_that_did_not_answer_may_have_lost_offsets_and_is_told_all_of_them_again():
    async with pushing() as scene:
        store = scene.member.offsets
        await store.commit({QUEUE: 5})
        scene.broker.disconnects = True
        store.update(SECOND, 6)
        await store.persist([SECOND])
        scene.broker.disconnects = False
        assert store.offset_for_pull(QUEUE) is None  # pulls are not in turn
        await store.persist([QUEUE, SECOND])
        assert told(scene) == ["5", "6", "5", "6"]
        assert store.offset_for_pull(QUEUE) == 5
