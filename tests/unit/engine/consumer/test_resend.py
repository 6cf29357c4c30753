"""A failed message of a stored batch is stored again as a message of its own."""

from dataclasses import replace

import pytest

from rmqtools.engine.consumer.send_back import SendBack
from rmqtools.model.codes import RequestCode
from rmqtools.protocol.messages.corrupt_message import corrupt_message
from rmqtools.protocol.messages.inner_batch import INNER_BATCH
from rmqtools.protocol.messages.properties import parse_properties
from tests.support.scripted_peer import run
from tests.unit.engine.consumer.push_scene import QUEUE, pushing, stored

OF_BATCH = replace(stored(7, tags="red"), sys_flag=INNER_BATCH, offset_msg_id="ID")


def resent(message, delay_level):
    """The fields and the body of the send, and the properties in it."""
    found = []

    async def scenario():
        async with pushing() as scene:
            send_back = SendBack(scene.client, "g", max_reconsume_times=16)
            assert await send_back.send(message, delay_level, queue=QUEUE)
            found.extend(scene.broker.requests)

    run(scenario)
    (command,) = found
    assert command.code == RequestCode.SEND_MESSAGE_V2
    return command.ext_fields, command.body, parse_properties(command.ext_fields["i"])


def test_it_goes_to_the_retry_topic_with_its_own_body_tags_and_topic():
    fields, body, properties = resent(OF_BATCH, 0)

    assert (fields["b"], fields["e"], fields["f"], fields["n"]) == ("%RETRY%g", "0", "0", "broker-a")
    assert body == b"7"
    assert (properties["TAGS"], properties["RETRY_TOPIC"], properties["ORIGIN_MESSAGE_ID"]) == (
        "red",
        "T",
        "ID",
    )


@pytest.mark.parametrize(("times", "delay_level", "level"), [(0, 0, "3"), (4, 0, "7"), (4, 2, "2")])
def test_it_comes_the_later_the_more_often_it_was_tried_unless_a_level_is_given(times, delay_level, level):
    fields, _, properties = resent(replace(OF_BATCH, reconsume_times=times), delay_level)

    assert (fields["j"], fields["l"], properties["DELAY"]) == (str(times + 1), "16", level)


def test_one_that_is_not_to_be_tried_again_is_a_dead_letter_at_once():
    fields, _, properties = resent(OF_BATCH, -1)

    assert int(fields["j"]) > int(fields["l"])
    assert "DELAY" not in properties


def test_a_batch_that_cannot_be_taken_apart_goes_with_its_body_as_stored():
    fields, body, _ = resent(corrupt_message(replace(OF_BATCH, body=b"\x00\x00"), "torn"), 0)

    assert (body, fields["f"]) == (b"\x00\x00", "0")
