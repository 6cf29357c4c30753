"""Frames larger than the decoder's buffer: their bodies have memory of their own."""

import tracemalloc
from itertools import pairwise
from pickle import PickleBuffer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools.errors import ProtocolError
from rmqtools.protocol.wire.framing import ROOM_BYTES, Frame, FrameDecoder, encode_frame

MIB = 1024 * 1024
LENGTHS = st.sampled_from([0, 3, ROOM_BYTES - 10, ROOM_BYTES, ROOM_BYTES + 1, 3 * ROOM_BYTES])
FRAMES = st.lists(
    st.builds(
        lambda number, header, body: Frame(number, b"h" * header, b"b" * body), st.just(1), LENGTHS, LENGTHS
    ),
    max_size=4,
)


def receive(decoder, data):
    """Take bytes as from a socket that has them all; the frames."""
    frames, data = [], memoryview(data)
    while data:
        room = decoder.room()
        count = min(len(room), len(data))
        room[:count] = data[:count]
        frames += decoder.advance(count)
        data = data[count:]
    return frames


@given(FRAMES, st.lists(st.integers(0, 4 * MIB), max_size=6))
def test_any_cut_of_a_stream_with_large_frames_gives_the_same_frames(frames, places):
    stream, decoder = b"".join(encode_frame(*frame) for frame in frames), FrameDecoder()
    edges = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]

    found = [frame for begin, end in pairwise(edges) for frame in receive(decoder, stream[begin:end])]

    assert found == frames
    assert not decoder.is_inside_frame


def test_a_large_body_is_received_where_it_stays():
    stream, decoder = encode_frame(0, b"{}", bytes(4 * MIB)), FrameDecoder()
    tracemalloc.start()

    (frame,) = receive(decoder, stream)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert len(frame.body) == 4 * MIB
    assert peak < 4 * MIB + 3 * ROOM_BYTES  # with a copy it would be twice the body


def test_the_room_ends_with_a_large_frame_so_the_next_one_is_not_mixed_in():
    stream, decoder = encode_frame(0, b"{}", bytes(MIB)), FrameDecoder()
    decoder.feed(stream[:100_000])

    assert len(decoder.room()) == len(stream) - 100_000
    assert decoder.is_inside_frame


def half_received():
    """A decoder that lacks the last 1,000 bytes of a large frame, and these."""
    stream, decoder = encode_frame(0, b"{}", b"x" * MIB), FrameDecoder()
    assert decoder.feed(stream[:-1000]) == []
    return decoder, stream[-1000:]


def test_the_memory_of_a_large_frame_that_will_not_end_is_released():
    decoder, _ = half_received()
    room = decoder.room()

    decoder.drop_unfinished()

    with pytest.raises(ValueError, match="released"):
        room[:1]


def complete_while_held(decoder, rest):
    """What comes when the room is still in use; who holds it."""
    room = decoder.room()
    room[:] = rest
    holder = PickleBuffer(room)
    return decoder.advance(len(rest)), holder


@pytest.mark.parametrize(
    "more", [FrameDecoder.collect, lambda decoder: receive(decoder, encode_frame(1, b"", b""))]
)
def test_a_large_frame_whose_room_is_in_use_comes_when_that_is_released(more):
    decoder, rest = half_received()
    frames, holder = complete_while_held(decoder, rest)
    assert frames == []
    assert decoder.is_held
    assert decoder.collect() == []

    holder.release()

    assert more(decoder)[0] == Frame(0, b"{}", b"x" * MIB)
    assert not decoder.is_held
    assert not decoder.is_inside_frame


def test_a_frame_whose_room_was_in_use_is_not_lost_in_front_of_an_impossible_one():
    decoder, rest = half_received()
    _, holder = complete_while_held(decoder, rest)
    holder.release()

    frames = decoder.feed(b"\xff" * 8)

    assert [len(frame.body) for frame in frames] == [MIB]
    assert isinstance(decoder.error, ProtocolError)
