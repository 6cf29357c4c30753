import pytest

from rmqtools.errors import BrokerError
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.protocol.command import response
from tests.support.scripted_peer import run
from tests.unit.engine.push_scene import QUEUE, pushing, refuses

UPDATE = RequestCode.UPDATE_CONSUMER_OFFSET


def test_offsets_go_to_the_broker_when_they_have_changed():
    async def scenario():
        async with pushing() as scene:
            store = scene.core.offsets
            store.update(QUEUE, 5)
            await store.persist([QUEUE])
            await store.persist([QUEUE])
            store.update(QUEUE, 6)
            await store.persist([QUEUE])
            assert [one["commitOffset"] for one in scene.asked(UPDATE)] == ["5", "6"]
            assert scene.asked(UPDATE)[0]["consumerGroup"] == "g"

    run(scenario)


def test_what_was_not_stored_is_stored_the_next_time_and_the_log_says_so(caplog):
    answers = [refuses]

    def answer(request):
        return answers.pop()(request) if answers else response(ResponseCode.SUCCESS, 0)

    async def scenario():
        async with pushing(answer=answer) as scene:
            scene.core.offsets.update(QUEUE, 5)
            await scene.core.offsets.persist([QUEUE])
            await scene.core.offsets.persist([QUEUE])
            assert len(scene.asked(UPDATE)) == 2

    run(scenario)
    assert "consumer_offset_not_stored" in caplog.text


def test_only_the_queues_that_are_named_are_stored():
    async def scenario():
        async with pushing() as scene:
            scene.core.offsets.update(QUEUE, 5)
            await scene.core.offsets.persist([])
            assert scene.asked(UPDATE) == []

    run(scenario)


def test_an_offset_may_be_kept_from_going_back_and_may_go_back():
    async def scenario():
        async with pushing() as scene:
            store = scene.core.offsets
            for offset, increase_only, kept in [(5, True, 5), (3, True, 5), (3, False, 3), (4, True, 4)]:
                store.update(QUEUE, offset, increase_only=increase_only)
                assert store.read_memory(QUEUE) == kept
            store.remove(QUEUE)
            assert store.noted() == {}

    run(scenario)


@pytest.mark.parametrize(
    ("answer", "offset"),
    [
        (response(ResponseCode.SUCCESS, 0, ext_fields={"offset": "17"}), 17),
        (response(ResponseCode.QUERY_NOT_FOUND, 0), None),
    ],
)
def test_a_group_without_offset_is_told_from_one_with_it(answer, offset):
    async def scenario():
        async with pushing(answer=lambda request: answer) as scene:
            assert await scene.core.offsets.read_store(QUEUE) == offset
            assert scene.committed == offset
            await scene.core.offsets.persist([QUEUE])
            assert scene.asked(UPDATE) == []  # it is stored there already

    run(scenario)


def test_a_broker_that_cannot_tell_the_offset_is_an_error_never_no_offset():
    async def scenario():
        async with pushing(answer=refuses) as scene:
            with pytest.raises(BrokerError, match="scripted"):
                await scene.core.offsets.read_store(QUEUE)

    run(scenario)
