"""Adapter of the vectors about typed headers."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum
from typing import Any

from rmqtools.model.codes import BoundaryType, LanguageCode, RequestCode
from rmqtools.protocol.headers.codec import Header, RequestHeader, decode_header, header_fields
from rmqtools.protocol.wire.command import decode_command, request
from tests.contract.adapters_protocol import frame_hex, frame_of, frame_parts
from tests.contract.vector_spec import Case, Spec, null_if_empty, outcome
from tests.support.headers import HEADERS


def header_class(name: str) -> type[RequestHeader]:
    """Our class of Java's name: they are the same."""
    found = HEADERS[name]
    assert issubclass(found, RequestHeader)
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
    asked = request(made, opaque=case["opaque"], code=case["code"])
    frame = frame_hex(replace(asked, language=LanguageCode.JAVA))
    fields = decode_command(frame_of(frame)).ext_fields
    return {
        "codeName": RequestCode(case["code"]).name,
        "jsonFrame": frame,
        "decodedHeader": error_or_value(lambda: show_header(decode_header(type(made), fields))),
    }


def error_or_value(function: Callable[[], Any]) -> Any:
    """The vectors write a decoded header without "value" around it."""
    found = outcome(function)
    return found.get("value", found)


def header_answer(answer: Case) -> Case:
    return null_if_empty("decodedHeader")(answer) | {"jsonFrame": frame_parts(answer["jsonFrame"])}


SPECS: Mapping[str, tuple[Spec, ...]] = {
    "header": (Spec(inputs=("header", "code", "set", "opaque"), adapter=header, normal=header_answer),),
}
