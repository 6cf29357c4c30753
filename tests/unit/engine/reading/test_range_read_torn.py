"""Answers to a range read in which a message is broken."""

import struct
from typing import Any

import pytest

from rmqtools import ClientConfig, MessageExt, QueueRange, aio
from rmqtools.errors import CorruptBodyError, ProtocolError
from rmqtools.model.sys_flag import COMPRESSED_FLAG
from rmqtools.protocol.wire.command import RemotingCommand, response
from tests.support.scripted_peer import run
from tests.unit.engine.reading.scripted_queue import QUEUE, Answer, Broker, reading, stored

AT = 3  # the offset of the broken message


def broken(at: int, value: int) -> bytes:
    """The message with another number at a place of its layout."""
    whole = bytearray(stored(AT))
    struct.pack_into(">i", whole, at, value)
    return bytes(whole)


BROKEN_BODY = broken(36, COMPRESSED_FLAG)
BROKEN_HEAD = broken(4, 0x12345678)


class Damaged(Broker):
    """A queue of eight messages, answered together; one of them is damaged."""

    def __init__(self, damaged: bytes) -> None:
        super().__init__(0, 8)
        self._damaged = damaged

    def answer(self, request: RemotingCommand, offset: int) -> Answer:
        body = b"".join(self._damaged if offset == AT else stored(offset) for offset in range(8))
        return response(0, 0, ext_fields=self.fields(8), body=body)


def read(damaged: bytes, *, into: list[MessageExt] | None = None, **how: Any) -> list[MessageExt]:
    """Return the messages of the whole queue; those in front of an error are in ``into``."""
    found = [] if into is None else into

    async def scenario() -> None:
        async with reading(Damaged(damaged)) as (_, client):
            async for messages in client.read_messages(QueueRange(QUEUE, 0, 8), **how):
                found.extend(messages)

    run(scenario)
    return found


def test_a_body_that_cannot_be_read_fails_the_read_and_is_named():
    with pytest.raises(CorruptBodyError, match=f"message at queue offset {AT} of ") as caught:
        read(BROKEN_BODY)

    error = caught.value
    assert (error.queue, error.offset, error.raw) == (QUEUE, AT, b"3")
    assert error.why.startswith("ZLIB body of 1 bytes cannot be decompressed")


def test_raw_gives_the_body_as_it_is_stored_and_leaves_the_mark_that_it_is_compressed():
    messages = read(BROKEN_BODY, corrupt_body="raw")

    assert [message.body for message in messages] == [b"%d" % offset for offset in range(8)]
    assert [message.queue_offset for message in messages if message.sys_flag & COMPRESSED_FLAG] == [AT]
    assert {message.body_error for message in messages} == {None}


def test_null_gives_a_message_that_has_everything_but_its_body():
    messages = read(BROKEN_BODY, corrupt_body="null")

    errors = [message.body_error for message in messages]
    assert [message.queue_offset for message in messages] == list(range(8))
    assert [error.offset for error in errors if error is not None] == [AT]
    with pytest.raises(CorruptBodyError):
        _ = messages[AT].body


@pytest.mark.parametrize("choice", ["raw", "null"])
def test_a_message_whose_head_is_broken_is_passed_over_alone_and_logged_with_its_offset(choice, caplog):
    messages = read(BROKEN_HEAD, corrupt_body=choice)

    assert [message.queue_offset for message in messages] == [0, 1, 2, 4, 5, 6, 7]
    (record,) = [one for one in caplog.records if "message_passed_over" in one.getMessage()]
    assert f"queue offset {AT} of {QUEUE}" in record.getMessage()


def test_a_message_whose_head_is_broken_fails_a_read_that_was_told_nothing():
    with pytest.raises(ProtocolError, match=f"message at queue offset {AT} of .* cannot be decoded"):
        read(BROKEN_HEAD)


@pytest.mark.parametrize("size", [0, -1, 10_000_000], ids=["none", "negative", "beyond-the-answer"])
def test_messages_in_front_of_an_impossible_size_are_handed_out_and_the_error_says_where_they_end(size):
    found: list[MessageExt] = []

    with pytest.raises(ProtocolError, match=rf"{AT} on$") as caught:
        read(broken(0, size), into=found)

    assert [message.queue_offset for message in found] == list(range(AT))
    assert str(QUEUE) in str(caught.value)


def test_an_unknown_choice_is_refused():
    with pytest.raises(ValueError, match=r"corrupt_body='skip'\): want one of fail, raw, null"):
        read(BROKEN_BODY, corrupt_body="skip")


async def test_an_administrator_reads_past_a_corrupt_message_too():
    found: list[MessageExt] = []

    async with (
        reading(Damaged(BROKEN_BODY)) as (cluster, _),
        aio.Admin(ClientConfig(name_server=cluster.name_server)) as admin,
    ):
        async for messages in admin.read_messages(QueueRange(QUEUE, 0, 8), corrupt_body="raw"):
            found.extend(messages)
    assert [message.body for message in found] == [b"%d" % offset for offset in range(8)]
