"""Adapter of the vectors about typed headers."""

import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum
from typing import Any

from rmqtools.model.codes import BoundaryType, LanguageCode, RequestCode, SerializeType
from rmqtools.protocol import headers
from rmqtools.protocol.headers import decode_header
from rmqtools.protocol.headers.codec import Header, RequestHeader, header_fields
from rmqtools.protocol.wire.command import decode_command, request
from tests.contract.adapters_protocol import frame_hex, frame_of, frame_parts
from tests.contract.rocketmq_header import rocketmq_fields
from tests.contract.vector_spec import Case, Spec, null_if_empty, outcome

_FIXED_BYTES = 2 + 1 + 2 + 4 + 4


def header_class(name: str) -> type[RequestHeader]:
    """Our class of Java's name: they are the same."""
    found: type[RequestHeader] = getattr(headers, name)
    return found


def make_header(name: str, values: Mapping[str, Any]) -> RequestHeader:
    """A header from values by their wire names; Java's class may have more fields than it writes."""
    names = {field.wire: field.name for field in header_fields(header_class(name))}
    typed = {wire: BoundaryType[value] if wire == "boundaryType" else value for wire, value in values.items()}
    return header_class(name)(**{names[wire]: value for wire, value in typed.items() if wire in names})


def show_header(made: Header) -> Case:
    """Values by their wire names, without those that are None."""
    values = {field.wire: getattr(made, field.name) for field in header_fields(type(made))}
    named = {wire: value.name if isinstance(value, Enum) else value for wire, value in values.items()}
    return {wire: value for wire, value in named.items() if value is not None}


def header(case: Case) -> Case:
    made = make_header(case["header"], case["set"])
    json_frame, rocketmq_frame = (request_frame(made, case, form) for form in SerializeType)
    fields = decode_command(frame_of(json_frame)).ext_fields
    return {
        "codeName": RequestCode(case["code"]).name,
        "extFields": rocketmq_fields(made),
        "jsonFrame": json_frame,
        "rocketmqFrame": rocketmq_frame,
        "decodedHeader": error_or_value(lambda: show_header(decode_header(type(made), fields))),
    }


def request_frame(made: RequestHeader, case: Case, form: SerializeType) -> str:
    asked = request(made, opaque=case["opaque"], code=case["code"])
    if form is SerializeType.ROCKETMQ:
        asked = replace(asked, ext_fields=rocketmq_fields(made), serialize_type=form)
    return frame_hex(replace(asked, language=LanguageCode.JAVA))


def error_or_value(function: Callable[[], Any]) -> Any:
    """The vectors write a decoded header without "value" around it."""
    found = outcome(function)
    return found.get("value", found)


def rocketmq_parts(text: str) -> Any:
    """A header without remark: fixed part, and fields sorted, since Java writes them in no order."""
    data = frame_of(text).header
    position, fields = _FIXED_BYTES + 8, []
    while position < len(data):
        for length_bytes in (2, 4):
            length = int.from_bytes(data[position : position + length_bytes])
            position += length_bytes + length
            fields.append(data[position - length : position].hex())
    lengths = struct.unpack_from(">ii", data, _FIXED_BYTES)
    return [data[:_FIXED_BYTES].hex(), *lengths, sorted(zip(fields[::2], fields[1::2], strict=True))]


def header_answer(answer: Case) -> Case:
    json_parts, other_parts = frame_parts(answer["jsonFrame"]), rocketmq_parts(answer["rocketmqFrame"])
    answer = null_if_empty("extFields", "decodedHeader")(answer)
    return answer | {"jsonFrame": json_parts, "rocketmqFrame": other_parts}


SPECS: Mapping[str, tuple[Spec, ...]] = {
    "header": (Spec(inputs=("header", "code", "set", "opaque"), adapter=header, normal=header_answer),),
}
