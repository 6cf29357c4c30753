import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools.protocol.wire.command import RemotingCommand, encode_command
from rmqtools.protocol.wire.wrong_protocol import name_foreign_protocol
from tests.unit.protocol.messages.stored_cases import TEXTS

SETTINGS_FRAME = b"\x00\x00\x12\x04\x00\x00\x00\x00\x00" + bytes(18)


@pytest.mark.parametrize(
    ("first_bytes", "name"),
    [
        pytest.param(b"HTTP/1.1 400 Bad Request\r\n", "HTTP/1", id="http-1"),
        pytest.param(b"\x15\x03\x03\x00\x02\x02\x28", "TLS", id="tls-alert"),
        pytest.param(b"\x16\x03\x03\x00\x7a\x02", "TLS", id="tls-handshake"),
        pytest.param(SETTINGS_FRAME, "HTTP/2", id="http-2"),
        pytest.param(SETTINGS_FRAME[:9], "HTTP/2", id="http-2-head-only"),
        pytest.param(b"\x00\x00\x00\x04\x01\x00\x00\x00\x00", "HTTP/2", id="http-2-acknowledgement"),
    ],
)
def test_another_protocol_is_named(first_bytes, name):
    assert (name_foreign_protocol(first_bytes) or "").startswith(name)


@pytest.mark.parametrize(
    "first_bytes",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"HTTP", id="http-1-cut"),
        pytest.param(b"\x15", id="tls-cut"),
        pytest.param(SETTINGS_FRAME[:8], id="http-2-cut"),
        pytest.param(b"\x00\x00\x12\x04\x00\x00\x00\x00\x01", id="settings-on-a-stream"),
        pytest.param(b"\x00\x00\x12\x05\x00\x00\x00\x00\x00", id="no-settings"),
    ],
)
def test_what_may_be_remoting_is_not_named(first_bytes):
    assert name_foreign_protocol(first_bytes) is None


@given(st.integers(0, 0x7FFF), TEXTS, st.binary(max_size=1200))
def test_no_command_is_taken_for_another_protocol(code, text, body):
    assert name_foreign_protocol(encode_command(RemotingCommand(code, {"f": text}, body))) is None
