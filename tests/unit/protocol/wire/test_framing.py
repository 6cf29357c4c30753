import array
import struct
import tracemalloc
from itertools import pairwise
from pickle import PickleBuffer
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools.errors import ProtocolError
from rmqtools.protocol.wire.framing import ROOM_BYTES, Frame, FrameDecoder, encode_frame

FRAMES = st.lists(
    st.builds(Frame, st.integers(0, 255), st.binary(max_size=40), st.binary(max_size=80)), max_size=6
)
IMPOSSIBLE = struct.pack(">II", 1 << 31, 2)


def wire(frames):
    return b"".join(encode_frame(*frame) for frame in frames)


def cut_at(data, places):
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


def feed_all(decoder, pieces):
    """All frames of the pieces, and whether the stream broke."""
    frames = []
    for piece in pieces:
        try:
            frames += decoder.feed(piece)
        except ProtocolError:
            break
    return frames, decoder.error is not None


def test_feed_returns_nothing_until_the_last_byte_then_one_frame():
    stream, decoder = encode_frame(0, b"{}", b"payload"), FrameDecoder()

    assert [decoder.feed(stream[i : i + 1]) for i in range(len(stream) - 1)] == [[]] * (len(stream) - 1)
    assert decoder.feed(stream[-1:]) == [Frame(serializer=0, header=b"{}", body=b"payload")]


@given(FRAMES, st.lists(st.integers(0, 1000), max_size=12))
def test_any_cut_of_a_stream_gives_the_same_frames(frames, places):
    assert feed_all(FrameDecoder(), cut_at(wire(frames), places)) == (frames, False)


@given(st.binary(max_size=200), st.lists(st.integers(0, 1000), max_size=8))
def test_any_bytes_in_any_cut_give_frames_or_a_protocol_error_alike(data, places):
    whole = feed_all(FrameDecoder(max_frame_bytes=64), [data])

    assert feed_all(FrameDecoder(max_frame_bytes=64), cut_at(data, places)) == whole


@given(FRAMES.filter(bool), st.lists(st.integers(0, 1000), max_size=12))
def test_frames_in_front_of_an_impossible_one_are_not_lost(frames, places):
    pieces = cut_at(wire(frames) + IMPOSSIBLE, places)

    assert feed_all(FrameDecoder(), pieces) == (frames, True)


@pytest.mark.parametrize(
    ("total", "header_length"),
    [
        pytest.param(1 << 31, 2, id="larger-than-the-limit"),
        pytest.param(6, 9, id="header-longer-than-frame"),
        pytest.param(3, 0, id="no-room-for-the-header-length"),
    ],
)
def test_feed_rejects_impossible_lengths(total, header_length):
    with pytest.raises(ProtocolError):
        FrameDecoder().feed(struct.pack(">II", total, header_length))


def test_a_broken_stream_stays_broken():
    decoder = FrameDecoder()
    with pytest.raises(ProtocolError):
        decoder.feed(IMPOSSIBLE)

    with pytest.raises(ProtocolError):
        decoder.feed(encode_frame(0, b"{}", b""))


def test_the_limit_counts_the_length_field_too():
    stream = encode_frame(0, b"{}", b"x" * 90)

    assert len(FrameDecoder(max_frame_bytes=100).feed(stream)) == 1
    with pytest.raises(ProtocolError):
        FrameDecoder(max_frame_bytes=99).feed(stream)


@pytest.mark.parametrize("padding", [pytest.param(0, id="small"), pytest.param(300_000, id="large")])
def test_the_rest_of_a_frame_is_not_taken_for_a_frame_of_its_own(padding):
    rest = encode_frame(1, b"inner", b"body")
    outer, decoder = encode_frame(0, b"{}", bytes(padding) + rest), FrameDecoder()

    assert decoder.feed(outer[: -len(rest)]) == []
    assert decoder.feed(rest) == [Frame(0, b"{}", bytes(padding) + rest)]


def test_memory_stays_within_one_frame_however_much_is_fed():
    decoder, frame = FrameDecoder(max_frame_bytes=1 << 20), encode_frame(0, b"{}", bytes(1 << 19))
    stream = frame[:-1]
    tracemalloc.start()

    decoder.feed(stream)
    for _ in range(20):
        decoder.feed(frame[-1:] + frame[:-1])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 6 << 20


def test_a_header_too_long_for_its_length_is_refused():
    with pytest.raises(ProtocolError):
        encode_frame(0, bytes(1 << 24), b"")


def test_a_frame_of_a_view_on_wide_items_is_that_of_its_bytes():
    wide: Any = memoryview(array.array("q", range(16)))

    assert encode_frame(0, b"{}", wide) == encode_frame(0, b"{}", wide.tobytes())


def test_a_decoder_fed_a_view_on_wide_items_reads_its_bytes():
    stream = encode_frame(0, b"{}", bytes(6))
    assert len(stream) % 8 == 0

    assert FrameDecoder().feed(memoryview(stream).cast("q")) == [Frame(0, b"{}", bytes(6))]


# Frames larger than the decoder's buffer: their bodies have memory of their own

MIB = 1024 * 1024
LENGTHS = st.sampled_from([0, 3, ROOM_BYTES - 10, ROOM_BYTES, ROOM_BYTES + 1, 3 * ROOM_BYTES])
LARGE_FRAMES = st.lists(
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


@given(LARGE_FRAMES, st.lists(st.integers(0, 4 * MIB), max_size=6))
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
