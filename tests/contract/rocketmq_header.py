"""The ROCKETMQ form of a command's header, as Java writes it: this package reads it and writes JSON only."""

import struct
from collections.abc import Mapping

from rmqtools.model.codes import LanguageCode, SerializeType
from rmqtools.protocol.wire.command import RemotingCommand
from rmqtools.protocol.wire.framing import encode_frame

_FIXED = struct.Struct(">HbHii")
_INT = struct.Struct(">i")
_SHORT = struct.Struct(">h")


def encode_rocketmq_header(command: RemotingCommand) -> bytes:
    """The ROCKETMQ form. Code and version are cut to 16 bits, as Java cuts them."""
    remark, ext_fields = (command.remark or "").encode(), _encode_fields(command.ext_fields)
    language = LanguageCode.OTHER if command.language is None else command.language
    fixed = _FIXED.pack(
        command.code & 0xFFFF, language, command.version & 0xFFFF, command.opaque, command.flag
    )
    return b"".join((fixed, _INT.pack(len(remark)), remark, _INT.pack(len(ext_fields)), ext_fields))


def encode_rocketmq_command(command: RemotingCommand) -> bytes:
    """A whole frame."""
    return encode_frame(SerializeType.ROCKETMQ, encode_rocketmq_header(command), command.body)


def _encode_fields(ext_fields: Mapping[str, str | None]) -> bytes:
    parts: list[bytes] = []
    for name, value in ext_fields.items():
        if value is not None:
            name_bytes, value_bytes = name.encode(), value.encode()
            parts += (_SHORT.pack(len(name_bytes)), name_bytes, _INT.pack(len(value_bytes)), value_bytes)
    return b"".join(parts)
