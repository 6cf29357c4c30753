"""Commands: what a frame says. A request or a response is a command.

The header is JSON, or the ROCKETMQ form (big-endian; lengths of 0 mean null):

    code:i16 | language:i8 | version:i16 | opaque:i32 | flag:i32
    | remark_length:i32, remark | fields_length:i32, (name_length:i16, name | value_length:i32, value)*

The form is chosen per frame: a broker may answer a ROCKETMQ header with a JSON one. Codes above 32767 (5.x
POP) do not fit into the ROCKETMQ form; such a command is written as JSON, which every peer reads.
Source of the rule: RemotingCommand, RocketMQSerializable, RemotingSerializable (Java client).
"""

import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rmqtools.errors import ProtocolError
from rmqtools.model.codes import MQ_VERSION, LanguageCode, SerializeType
from rmqtools.protocol.framing import Frame, encode_frame
from rmqtools.protocol.header_codec import RequestHeader, encode_header

RESPONSE_FLAG = 1
ONEWAY_FLAG = 2

_FIXED = struct.Struct(">HbHii")
_FIXED_DECODE = struct.Struct(">hbhii")
_INT = struct.Struct(">i")
_SHORT = struct.Struct(">h")
_MAX_SHORT = 0x7FFF

_LANGUAGE_BY_NAME: Mapping[str, LanguageCode] = dict(LanguageCode.__members__)
_LANGUAGE_BY_CODE: Mapping[int, LanguageCode] = {language.value: language for language in LanguageCode}
_NO_FIELDS: Mapping[str, str | None] = {}

_quote = json.encoder.encode_basestring
_scan_json = json.JSONDecoder().raw_decode
_format_json = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode


@dataclass(slots=True)
class RemotingCommand:
    """A request or a response. Treat it as a value: a changed one is a new one (``dataclasses.replace``).

    ``language`` is None where the peer's is unknown here. A value of ``ext_fields`` is None where the wire
    said null, or, in the ROCKETMQ form, where it was empty.
    """

    code: int
    ext_fields: Mapping[str, str | None] = field(default_factory=dict)
    body: bytes = b""
    opaque: int = 0
    flag: int = 0
    remark: str | None = None
    language: LanguageCode | None = LanguageCode.PYTHON
    version: int = MQ_VERSION
    serialize_type: SerializeType = SerializeType.JSON

    @property
    def is_response(self) -> bool:
        """Whether this answers a request of the other side."""
        return bool(self.flag & RESPONSE_FLAG)

    @property
    def is_oneway(self) -> bool:
        """Whether no answer is wanted."""
        return bool(self.flag & ONEWAY_FLAG)

    def encode(self, opaque: int) -> bytes:
        """The whole frame, under this opaque; errors as of :func:`encode_command`."""
        return encode_command(self, opaque=opaque)

    def command(self) -> "RemotingCommand":
        """Itself."""
        return self


def request(
    header: RequestHeader,
    body: bytes = b"",
    *,
    opaque: int = 0,
    oneway: bool = False,
    serialize_type: SerializeType = SerializeType.JSON,
    code: int | None = None,
) -> RemotingCommand:
    """Make a request of a typed header; ``code`` where it is not the header's usual one."""
    return RemotingCommand(
        code=header.code if code is None else code,
        ext_fields=encode_header(header, rocketmq=serialize_type is SerializeType.ROCKETMQ),
        body=body,
        opaque=opaque,
        flag=ONEWAY_FLAG if oneway else 0,
        serialize_type=serialize_type,
    )


def response(
    code: int,
    opaque: int,
    remark: str | None = None,
    ext_fields: Mapping[str, str | None] = _NO_FIELDS,
    body: bytes = b"",
) -> RemotingCommand:
    """Make the answer to the request that carried ``opaque``."""
    return RemotingCommand(
        code=code, ext_fields=ext_fields, body=body, opaque=opaque, flag=RESPONSE_FLAG, remark=remark
    )


def encode_command(command: RemotingCommand, *, opaque: int | None = None) -> bytes:
    """Write a whole frame, its length included. A header that the ROCKETMQ form cannot hold becomes JSON.

    ``opaque``: over the command's own; a copy with another one would cost as much as the rest.

    Raises:
        ProtocolError: a text that is no Unicode (a lone surrogate), or a header of more than 16 MiB.
    """
    try:
        if command.serialize_type == SerializeType.ROCKETMQ and _fits_rocketmq(command):
            return encode_frame(SerializeType.ROCKETMQ, encode_rocketmq_header(command, opaque), command.body)
        return encode_frame(SerializeType.JSON, encode_json_header(command, opaque), command.body)
    except UnicodeEncodeError as error:
        raise ProtocolError(f"command {command.code} holds text that is no Unicode: {error}") from error


def decode_command(frame: Frame) -> RemotingCommand:
    """Read a frame. Unknown codes, languages and fields pass through.

    Raises:
        ProtocolError: the header is neither form, or breaks off.
    """
    decode = _HEADER_DECODERS.get(frame.serializer)
    if decode is None:
        raise ProtocolError(f"header of unknown serialize type {frame.serializer}")
    command = decode(frame.header)
    command.body = frame.body
    return command


def encode_json_header(command: RemotingCommand, opaque: int | None = None) -> bytes:
    """The JSON form, keys in the order Java writes them, nothing for null.

    Written by hand: twice as fast as a JSON encoder, and every send and pull passes here.
    """
    ext_fields = command.ext_fields
    pairs = [f"{_quote(name)}:{_quote(value)}" for name, value in ext_fields.items() if value is not None]
    fields = f'"extFields":{{{",".join(pairs)}}},' if ext_fields else ""
    remark = "" if command.remark is None else f'"remark":{_quote(command.remark)},'
    return (
        f'{{"code":{int(command.code)},{fields}"flag":{command.flag:d},"language":"{_language_of(command)._name_}",'
        f'"opaque":{command.opaque if opaque is None else opaque:d},{remark}'
        f'"serializeTypeCurrentRPC":"JSON","version":{command.version:d}}}'
    ).encode()


def encode_rocketmq_header(command: RemotingCommand, opaque: int | None = None) -> bytes:
    """The ROCKETMQ form. Code and version are cut to 16 bits, as Java cuts them: see ``encode_command``."""
    remark = (command.remark or "").encode()
    fields = _encode_fields(command.ext_fields)
    fixed = _FIXED.pack(
        command.code & 0xFFFF,
        _language_of(command),
        command.version & 0xFFFF,
        command.opaque if opaque is None else opaque,
        command.flag,
    )
    return b"".join((fixed, _INT.pack(len(remark)), remark, _INT.pack(len(fields)), fields))


def _language_of(command: RemotingCommand) -> LanguageCode:
    return LanguageCode.OTHER if command.language is None else command.language


def _encode_fields(ext_fields: Mapping[str, str | None]) -> bytes:
    parts: list[bytes] = []
    for name, value in ext_fields.items():
        if value is not None:
            name_bytes, value_bytes = name.encode(), value.encode()
            parts += (_SHORT.pack(len(name_bytes)), name_bytes, _INT.pack(len(value_bytes)), value_bytes)
    return b"".join(parts)


def _fits_rocketmq(command: RemotingCommand) -> bool:
    small = -_MAX_SHORT - 1 <= command.code <= _MAX_SHORT and 0 <= command.version <= _MAX_SHORT
    return small and all(len(name.encode()) <= _MAX_SHORT for name in command.ext_fields)


def _decode_json_header(header: bytes) -> RemotingCommand:
    try:
        return _command_of(_load_json(header.decode()))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ProtocolError(f"JSON header cannot be read: {error!r}: {header[:200]!r}") from error


def _load_json(text: str) -> Any:
    """As ``json.loads``, which looks for blanks around the text first: a third of its price."""
    try:
        value, end = _scan_json(text)
    except ValueError:  # no JSON, or blanks in front of it
        return json.loads(text)
    return value if end == len(text) else json.loads(text)


def _command_of(fields: dict[str, Any]) -> RemotingCommand:
    """A missing key has the value a new command of the Java client has; opaque is 0."""
    ext_fields = fields.get("extFields") or _NO_FIELDS
    for value in ext_fields.values():
        if type(value) is not str:
            ext_fields = {name: _text_of(value) for name, value in ext_fields.items()}
            break
    get = fields.get
    numbers = (fields["code"], get("opaque", 0), get("flag", 0), get("version", 0))
    for number in numbers:
        if type(number) is not int or not -0x8000_0000 <= number <= 0x7FFF_FFFF:
            raise ValueError(f"{number!r} is no 32-bit integer")
    code, opaque, flag, version = numbers
    remark, language = get("remark"), _LANGUAGE_BY_NAME.get(get("language", "JAVA"))
    remark = remark if remark is None else str(remark)
    return RemotingCommand(code, ext_fields, b"", opaque, flag, remark, language, version)


def _text_of(value: Any) -> str | None:
    """Java keeps what is no text as its text: ``true``, ``3``; null stays null."""
    return value if value is None or isinstance(value, str) else _format_json(value)


def _decode_rocketmq_header(header: bytes) -> RemotingCommand:
    try:
        code, language, version, opaque, flag = _FIXED_DECODE.unpack_from(header)
        remark, offset = _decode_text(header, _FIXED_DECODE.size, _INT)
        (length,) = _INT.unpack_from(header, offset)
        start = offset + _INT.size
        if length > len(header) - start:
            raise ProtocolError(f"ROCKETMQ header of {len(header)} bytes has fields of {length}")
        ext_fields = _decode_fields(header, start, start + length) if length > 0 else _NO_FIELDS
    except (struct.error, UnicodeDecodeError) as error:
        raise ProtocolError(f"ROCKETMQ header cannot be read: {error}: {header[:200]!r}") from error
    return RemotingCommand(
        code=code,
        ext_fields=ext_fields,
        opaque=opaque,
        flag=flag,
        remark=remark,
        language=_LANGUAGE_BY_CODE.get(language),
        version=version,
        serialize_type=SerializeType.ROCKETMQ,
    )


def _decode_fields(header: bytes, offset: int, end: int) -> dict[str, str | None]:
    ext_fields: dict[str, str | None] = {}
    while offset < end:
        name, offset = _decode_text(header, offset, _SHORT)
        value, offset = _decode_text(header, offset, _INT)
        ext_fields[name or ""] = value
    return ext_fields


def _decode_text(header: bytes, offset: int, length_form: struct.Struct) -> tuple[str | None, int]:
    """A text behind its length, and where it ends; None where the length is 0."""
    (length,) = length_form.unpack_from(header, offset)
    start = offset + length_form.size
    end = start + length
    if length < 0 or end > len(header):
        raise ProtocolError(f"ROCKETMQ header of {len(header)} bytes: a text of {length} bytes at {offset}")
    return header[start:end].decode() if length else None, end


_HEADER_DECODERS: Mapping[int, Callable[[bytes], RemotingCommand]] = {
    SerializeType.JSON: _decode_json_header,
    SerializeType.ROCKETMQ: _decode_rocketmq_header,
}
