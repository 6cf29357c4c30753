import contextlib
import sys
import tracemalloc
import zlib

import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from rmqtools.errors import ProtocolError
from rmqtools.protocol.messages.compression import CompressionType, compress, decompress

MEBIBYTE = 1 << 20
KINDS = pytest.mark.parametrize("kind", CompressionType)


def stream_zstd(data):
    """Without the content size in front, as Java's stream writes it."""
    compressor = zstandard.ZstdCompressor().compressobj()
    return compressor.compress(data) + compressor.flush()


@KINDS
@given(data=st.binary(max_size=5000))
def test_decompressing_gives_what_was_compressed(kind, data):
    assert decompress(kind, compress(kind, data)) == data


@KINDS
def test_a_body_of_exactly_the_limit_fits_and_one_byte_more_does_not(kind):
    data = compress(kind, bytes(1000))

    assert decompress(kind, data, max_bytes=1000) == bytes(1000)
    with pytest.raises(ProtocolError, match="larger than 999"):
        decompress(kind, data, max_bytes=999)


@KINDS
@pytest.mark.parametrize("limit", [2**62, sys.maxsize, 2**70])
def test_a_limit_beyond_all_memory_is_none(kind, limit):
    assert decompress(kind, compress(kind, bytes(100_000)), max_bytes=limit) == bytes(100_000)


@pytest.mark.process  # it works for seconds
@pytest.mark.parametrize(
    ("kind", "pack"),
    [
        (CompressionType.ZLIB, zlib.compress),
        (CompressionType.LZ4, lz4.frame.compress),
        (CompressionType.ZSTD, zstandard.compress),
        (CompressionType.ZSTD, stream_zstd),
    ],
    ids=["zlib", "lz4", "zstd", "zstd without size"],
)
def test_a_bomb_is_refused_within_bounded_memory(kind, pack):
    bomb = pack(bytes(128 * MEBIBYTE))
    tracemalloc.start()

    with pytest.raises(ProtocolError, match="larger"):
        decompress(kind, bomb, max_bytes=MEBIBYTE)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 100 * MEBIBYTE


@KINDS
def test_a_body_that_is_cut_off_is_refused(kind):
    data = compress(kind, b"payload" * 100)

    for end in range(len(data) - 1):
        with pytest.raises(ProtocolError):
            decompress(kind, data[:end])


def test_a_zstd_stream_without_size_that_is_cut_off_is_refused():
    data = stream_zstd(b"payload" * 100)

    assert decompress(CompressionType.ZSTD, data) == b"payload" * 100
    with pytest.raises(ProtocolError):
        decompress(CompressionType.ZSTD, data[:-3])


@KINDS
@given(data=st.binary(max_size=200))
def test_any_bytes_give_a_body_or_a_protocol_error(kind, data):
    with contextlib.suppress(ProtocolError):
        decompress(kind, data)


@KINDS
def test_the_type_bits_of_a_sys_flag_are_read_back(kind):
    assert CompressionType.of_sys_flag(kind.sys_flag | 1) is kind


def test_no_type_bits_mean_zlib_and_unknown_ones_are_refused():
    assert CompressionType.of_sys_flag(1) is CompressionType.ZLIB
    for number in (4, 5, 6, 7):
        with pytest.raises(ProtocolError, match=f"compression type {number}"):
            CompressionType.of_sys_flag(number << 8)
