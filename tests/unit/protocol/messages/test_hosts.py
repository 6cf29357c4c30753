import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools.errors import ProtocolError
from rmqtools.protocol.messages.hosts import decode_host, encode_host

ADDRESSES = st.binary(min_size=4, max_size=4) | st.binary(min_size=16, max_size=16)


@given(ADDRESSES, st.integers(0, 65535))
def test_encoding_gives_what_was_decoded(address, port):
    data = address + port.to_bytes(4)

    assert encode_host(decode_host(data)) == data


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (bytes([10, 0, 0, 1, 0, 0, 0x2A, 0x9F]), "10.0.0.1:10911"),
        (bytes(15) + b"\x01" + bytes([0, 0, 0x2A, 0x9F]), "[::1]:10911"),
    ],
)
def test_hosts_read_as_people_write_them(data, text):
    assert decode_host(data) == text


@pytest.mark.parametrize(
    "data", [b"", bytes(7), bytes(12), bytes([1, 2, 3, 4, 0, 1, 0, 0]), bytes([1, 2, 3, 4]) + b"\xff" * 4]
)
def test_bytes_that_are_no_host_are_refused(data):
    with pytest.raises(ProtocolError):
        decode_host(data)


@pytest.mark.parametrize(
    "text", ["", "10.0.0.1", "10.0.0.1:", "10.0.0.1:70000", "broker-a:10911", "10.0.0.1:-1", "10.0.0.1:1_0"]
)
def test_texts_that_are_no_address_are_refused(text):
    with pytest.raises(ValueError, match=r"."):
        encode_host(text)
