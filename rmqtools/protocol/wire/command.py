"""Commands: requests and responses, the content of frames.

The header is JSON, or the ROCKETMQ form (big-endian; lengths of 0 mean null):

    code:i16 | language:i8 | version:i16 | opaque:i32 | flag:i32
    | remark_length:i32, remark | fields_length:i32, (name_length:i16, name | value_length:i32, value)*

The form is chosen per frame, and a broker may answer a JSON header with a ROCKETMQ one: both are read. Only
JSON is written: every peer reads it, and codes above 32767 (5.x POP) do not fit into the ROCKETMQ form.
Source of the rule: RemotingCommand, RocketMQSerializable, RemotingSerializable (Java client).
"""

import json
import reprlib
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rmqtools.compiled import twins
from rmqtools.errors import ProtocolError
from rmqtools.model.codes import MQ_VERSION, LanguageCode, SerializeType
from rmqtools.protocol.headers.codec import RequestHeader, encode_header
from rmqtools.protocol.wire.framing import Frame, FrameDecoder, encode_frame

MAX_REMARK = 1024  # characters of a remark that are kept: it goes into the texts of errors
MAX_FIELDS = 4096  # of a header; no request or response has a hundredth of that
RESPONSE_FLAG = 1
ONEWAY_FLAG = 2

_MAX_JSON_MARKS = 64 * 1024
_FREELY_BYTES = 64 * 1024  # shorter headers cannot hold enough fields to matter
_FIXED = struct.Struct(">hbhii")
_INT = struct.Struct(">i")
_SHORT = struct.Struct(">h")

_LANGUAGE_BY_NAME: Mapping[str, LanguageCode] = dict(LanguageCode.__members__)
_LANGUAGE_BY_CODE: Mapping[int, LanguageCode] = {language.value: language for language in LanguageCode}
_NO_FIELDS: Mapping[str, str | None] = {}

_quote = json.encoder.encode_basestring
_scan_json = json.JSONDecoder().scan_once  # type: ignore[attr-defined]  # not in typeshed
_format_json = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode


@dataclass(slots=True)
class RemotingCommand:
    """A request or a response. Treat it as a value: make changed copies with ``dataclasses.replace``.

    ``language`` is None where the peer's is unknown here. A value of ``ext_fields`` is None if the wire
    had null, or in the ROCKETMQ form an empty value. ``serialize_type`` is the form that was read.
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
        """True if this is the answer to a request."""
        return bool(self.flag & RESPONSE_FLAG)

    @property
    def is_oneway(self) -> bool:
        """True if no answer is expected."""
        return bool(self.flag & ONEWAY_FLAG)

    def encode(self, opaque: int) -> bytes:
        """Return the whole frame with this opaque; raises as :func:`encode_command`."""
        return encode_command(self, opaque=opaque)

    def command(self) -> "RemotingCommand":
        """Return this command itself."""
        return self


if twins is not None and not twins.bind_command(RemotingCommand, dict(_LANGUAGE_BY_NAME), SerializeType.JSON):
    twins = None  # type: ignore[assignment]  # this is a reload: they make the first RemotingCommand


def request(
    header: RequestHeader,
    body: bytes = b"",
    *,
    opaque: int = 0,
    oneway: bool = False,
    code: int | None = None,
) -> RemotingCommand:
    """Make a request from a typed header; ``code`` only if it is not the header's usual one."""
    return RemotingCommand(
        code=header.code if code is None else code,
        ext_fields=encode_header(header),
        body=body,
        opaque=opaque,
        flag=ONEWAY_FLAG if oneway else 0,
    )


def response(
    code: int,
    opaque: int,
    remark: str | None = None,
    ext_fields: Mapping[str, str | None] = _NO_FIELDS,
    body: bytes = b"",
) -> RemotingCommand:
    """Make the answer to the request with this ``opaque``."""
    return RemotingCommand(
        code=code, ext_fields=ext_fields, body=body, opaque=opaque, flag=RESPONSE_FLAG, remark=remark
    )


def encode_command(command: RemotingCommand, *, opaque: int | None = None) -> bytes:
    """Write a whole frame with a JSON header, its length included.

    ``opaque`` replaces the command's own: making a copy with another one would double the cost.

    Raises:
        ProtocolError: a text is not valid Unicode (a lone surrogate), or the header exceeds 16 MiB.
    """
    try:
        return encode_frame(SerializeType.JSON, encode_json_header(command, opaque), command.body)
    except UnicodeEncodeError as error:
        raise ProtocolError(f"command {command.code} holds text that is no Unicode: {error}") from error


def decode_whole(data: bytes | memoryview, count: int, decoder: FrameDecoder) -> RemotingCommand | None:
    """Decode the command that the first ``count`` bytes are, if ``decoder`` waits for exactly one frame.

    Nearly every answer to a send comes so. None: give the bytes to the decoder, which says what they are.
    """
    if twins is None or not decoder.may_be_whole(count):
        return None
    whole: RemotingCommand | None = twins.read_frame(data, count)
    return whole


def decode_command(frame: Frame) -> RemotingCommand:
    """Decode a frame. Unknown codes, languages and fields are kept or ignored, never errors.

    Raises:
        ProtocolError: the header has neither form, or is incomplete.
    """
    if twins is not None and frame.serializer == SerializeType.JSON:
        plain: RemotingCommand | None = twins.read_header(frame.header, frame.body)
        if plain is not None:
            return plain
    decode = _HEADER_DECODERS.get(frame.serializer)
    if decode is None:
        raise ProtocolError(f"header of unknown serialize type {frame.serializer}")
    command = decode(frame.header)
    command.body = frame.body
    return command


def encode_json_header(command: RemotingCommand, opaque: int | None = None) -> bytes:
    """Encode the JSON form: keys in Java's order, without nulls.

    Written by hand, because every send and pull needs it and this is twice as fast as a JSON encoder.
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


def _language_of(command: RemotingCommand) -> LanguageCode:
    return LanguageCode.OTHER if command.language is None else command.language


def _decode_json_header(header: bytes) -> RemotingCommand:
    if len(header) > _FREELY_BYTES:
        _check_json_size(header)
    try:
        return _command_of(_load_json(header.decode()))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ProtocolError(f"JSON header cannot be read: {error!r}: {header[:200]!r}") from error


def _load_json(text: str) -> Any:
    """Load JSON without ``json.loads``'s search for blanks around the text, a third of its time."""
    try:
        value, end = _scan_json(text, 0)
    except (ValueError, StopIteration):  # not JSON, or blanks in front of it
        return json.loads(text)
    return value if end == len(text) else json.loads(text)


def _command_of(fields: dict[str, Any]) -> RemotingCommand:
    """Return the command that a header describes; missing keys have a new Java command's values, opaque is 0.

    An unreadable language or version is not an error, because it does not affect the command's meaning.
    """
    ext_fields = fields.get("extFields") or _NO_FIELDS
    for value in ext_fields.values():
        if type(value) is not str:
            ext_fields = {name: _text_of(value) for name, value in ext_fields.items()}
            break
    get = fields.get
    numbers = (fields["code"], get("opaque", 0), get("flag", 0), get("version", 0))
    for number in numbers:
        if type(number) is not int or not -0x8000_0000 <= number <= 0x7FFF_FFFF:
            numbers = _odd_numbers(*numbers)
            break
    code, opaque, flag, version = numbers
    try:
        language = _LANGUAGE_BY_NAME.get(get("language", "JAVA"))
    except TypeError:  # a list or an object
        language = None
    remark = get("remark")
    remark = remark if remark is None else _cut(str(remark))
    return RemotingCommand(code, ext_fields, b"", opaque, flag, remark, language, version)


def _check_json_size(header: bytes) -> None:
    """Refuse a header of many values. Commas in its texts count too, so the limit is far above any header."""
    if header.count(b"{") + header.count(b"[") + header.count(b",") > _MAX_JSON_MARKS:
        raise ProtocolError(f"JSON header of {len(header)} bytes has more than {_MAX_JSON_MARKS} values")


def _cut(remark: str) -> str:
    """Return a remark that is short enough for the text of an error."""
    if len(remark) <= MAX_REMARK:
        return remark
    return f"{remark[:MAX_REMARK]}... ({len(remark)} characters)"


def _odd_numbers(code: Any, opaque: Any, flag: Any, version: Any) -> tuple[int, int, int, int]:
    """Numbers of which one is none: null is 0, and a version may be anything."""
    needed = (code, 0 if opaque is None else opaque, 0 if flag is None else flag)
    for number in needed:
        if not _is_int32(number):
            raise ValueError(f"{reprlib.repr(number)} is no 32-bit integer")
    return (*needed, version if _is_int32(version) else 0)


def _is_int32(value: Any) -> bool:
    return type(value) is int and -0x8000_0000 <= value <= 0x7FFF_FFFF


def _text_of(value: Any) -> str | None:
    """Turn values into texts like Java: ``true``, ``3``; null stays null."""
    return value if value is None or isinstance(value, str) else _format_json(value)


def _decode_rocketmq_header(header: bytes) -> RemotingCommand:
    try:
        code, language, version, opaque, flag = _FIXED.unpack_from(header)
        remark, offset = _decode_text(header, _FIXED.size, _INT)
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
        remark=None if remark is None else _cut(remark),
        language=_LANGUAGE_BY_CODE.get(language),
        version=version,
        serialize_type=SerializeType.ROCKETMQ,
    )


def _decode_fields(header: bytes, offset: int, end: int) -> dict[str, str | None]:
    ext_fields: dict[str, str | None] = {}
    count = 0
    while offset < end:
        if (count := count + 1) > MAX_FIELDS:
            raise ProtocolError(f"ROCKETMQ header of {len(header)} bytes has more than {MAX_FIELDS} fields")
        name, offset = _decode_text(header, offset, _SHORT)
        value, offset = _decode_text(header, offset, _INT)
        ext_fields[name or ""] = value
    return ext_fields


def _decode_text(header: bytes, offset: int, length_form: struct.Struct) -> tuple[str | None, int]:
    """Decode a text after its length, and return where it ends; None if the length is 0."""
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
