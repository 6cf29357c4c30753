"""A pull that leaves before the answer in front of it is decoded."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from rmqtools.model.codes import ResponseCode
from rmqtools.model.sys_flag import MessageSysFlag
from rmqtools.protocol.messages.stored import encode_message
from rmqtools.protocol.wire.command import RemotingCommand
from tests.unit.engine.consumer.pull_script import PULL, answered, asked_offsets, found, pulls, script
from tests.unit.engine.consumer.push_scene import Scene, idle, pushing, stored, until, waits_for


def noted(scene: Scene, meanwhile: Callable[[int], None] = lambda _: None) -> list[object]:
    """A list of each pull with the place of the queue at that moment, and of what was fetched.

    ``meanwhile`` happens right after a pull.
    """
    ask, fetched = scene.puller._ask, scene.fetching.fetched
    found: list[object] = []

    def noting(held, offset):
        found.append((offset, held.next_offset))
        asked = ask(held, offset)
        meanwhile(offset)
        return asked

    scene.puller._ask = noting
    scene.fetching.fetched = lambda held, messages: (found.append("fetched"), fetched(held, messages))
    return found


async def test_the_next_pull_is_on_its_way_while_an_answer_is_decoded_which_counts_as_fetched_only_then():
    async with pushing(answer=script(found(0), found(1, 2), found(3))) as scene:
        found_and_asked = noted(scene)
        await pulls(scene, 4)
        await until(lambda: scene.committed == 4)
        assert found_and_asked == [(0, 0), "fetched", (1, 1), (3, 1), "fetched", (4, 3), "fetched"]


async def test_what_is_all_a_broker_has_is_handed_out_before_more_is_asked_for():
    answers = script(found(0), found(1, stored=(0, 2)), found(2, stored=(0, 3)))
    async with pushing(answer=answers) as scene:
        found_and_asked = noted(scene)
        await pulls(scene, 4)
        assert found_and_asked == [(0, 0), "fetched", (1, 1), "fetched", (2, 2), "fetched", (3, 3)]


async def test_no_pull_is_left_at_the_broker_by_an_answer_that_cannot_be_read(caplog):
    """It could take the broker's only report that an administrator has reset the offset."""

    torn = answered(ResponseCode.SUCCESS, 2, body=b"\0\0\0\5torn")
    async with pushing(answer=script(torn, torn, found(0)), delay_after_error=0.001) as scene:
        for number in (1, 2):
            await pulls(scene, number)
            await until(lambda: scene.is_resting)
            scene.clock.advance(1)
            scene.held.wake()
        await until(lambda: scene.heard == [[0]])
        await pulls(scene, 4)
        assert asked_offsets(scene) == [0, 0, 0, 1]


async def test_a_seek_between_two_pulls_drops_the_answer_and_the_pull_after_it():
    async with pushing(answer=script(found(0), found(1, 2), found(3))) as scene:

        def seek(offset):
            if offset == 3:
                scene.held.next_offset = 70

        noted(scene, seek)
        await pulls(scene, 4)
        assert (asked_offsets(scene), scene.heard) == ([0, 1, 3, 70], [[0]])


async def test_what_is_given_up_between_two_pulls_is_not_handed_out():
    async with pushing(answer=script(found(0), found(1, 2), found(3))) as scene:
        noted(scene, lambda offset: scene.held.drop() if offset == 3 else None)
        await pulls(scene, 2)
        await until(lambda: not scene.puller.running)
        assert scene.heard == [[0]]


async def test_bodies_that_grow_when_decompressed_are_held_up_to_the_limit_and_one_pull():
    ended = asyncio.Event()
    compressed = MessageSysFlag.COMPRESSED_FLAG | MessageSysFlag.COMPRESSION_ZLIB_TYPE

    def large(offset: int) -> RemotingCommand:
        message = replace(stored(offset), body=bytes(10_000), sys_flag=int(compressed))
        return answered(ResponseCode.SUCCESS, offset + 1, body=encode_message(message))

    answers = script(found(0), large(1), large(2), large(3))
    async with pushing(waits_for(ended), answer=answers, pull_threshold_bytes_for_queue=5_000) as scene:
        await pulls(scene, 3)
        await idle()
        assert (len(scene.asked(PULL)), scene.held.count) == (3, 2)  # the third is here, and waits
        ended.set()
        await until(lambda: scene.committed == 4)
