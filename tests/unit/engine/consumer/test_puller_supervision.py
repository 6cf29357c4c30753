"""Queues go on being fetched after an error that comes while another error is handled."""

import pytest

from rmqtools.engine.connection import background
from rmqtools.engine.group.pop_process_queue import PopProcessQueue
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.protocol.wire.command import response
from tests.unit.engine.consumer.pull_script import found, script
from tests.unit.engine.consumer.push_scene import QUEUE, pushing, until

FORGOTTEN = response(ResponseCode.SUBSCRIPTION_NOT_EXIST, 0, remark="who?")


async def fails(*_: object) -> None:
    raise KeyError("foreseen by nobody")


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(background, "PAUSE_AFTER_ERROR", 0.001)


async def test_a_queue_is_pulled_on_after_an_error_in_the_handling_of_another(monkeypatch, caplog):
    async with pushing(answer=script(FORGOTTEN, found(0))) as scene:
        monkeypatch.setattr(scene.client, "send_heartbeat", fails)
        scene.puller.start(scene.held)
        await until(lambda: scene.heard == [[0]])
    assert "background_loop_failed" in caplog.text


async def test_a_queue_is_popped_on_after_an_error_in_the_handling_of_another(monkeypatch, caplog):
    def answer(request):
        return FORGOTTEN if request.code == RequestCode.POP_MESSAGE else response(0, 0)

    async with pushing(answer=answer) as scene:
        monkeypatch.setattr(scene.client, "send_heartbeat", fails)
        scene.popper.start(PopProcessQueue(QUEUE, scene.clock))
        await until(lambda: len(scene.asked(RequestCode.POP_MESSAGE)) > 1)
        await scene.popper.close()
    assert "background_loop_failed" in caplog.text
