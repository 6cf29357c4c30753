"""Recognizes other protocols by a peer's first bytes, so that the error can name a wrong port.

HTTP/2 (gRPC): a SETTINGS frame (length u24, type 4) on stream 0, RFC 9113 section 3.4.
TLS: a record of type alert (21) or handshake (22), version 3.x. HTTP/1: the text ``HTTP/``.
"""

from rmqtools.errors import ProtocolError

_HTTP2_SETTINGS = 4
_TLS_RECORDS = (b"\x15\x03", b"\x16\x03")


def name_foreign_protocol(first_bytes: bytes) -> str | None:
    """Return the name of a peer's protocol; None if it may be the remoting protocol."""
    if first_bytes.startswith(b"HTTP/"):
        return "HTTP/1"
    if first_bytes.startswith(_TLS_RECORDS):
        return "TLS (set tls_enable)"
    if len(first_bytes) >= 9 and first_bytes[3] == _HTTP2_SETTINGS and first_bytes[5:9] == bytes(4):
        return "HTTP/2 (a proxy's gRPC port?)"
    return None


def refuse_foreign_protocol(first_bytes: bytes) -> None:
    """Refuse a peer that does not speak the remoting protocol.

    Raises:
        ProtocolError: names the peer's protocol, and the remedy.
    """
    if (protocol := name_foreign_protocol(first_bytes)) is not None:
        raise ProtocolError(f"this port speaks {protocol}; give the name server's or broker's remoting port")
