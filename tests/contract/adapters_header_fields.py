"""Adapters of the vectors about the fields of headers: names, types, what is required, what texts they take.

The file of fields is cut to the headers this package has.
"""

import inspect
import types
import typing
from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Any

from rmqtools.errors import ProtocolError
from rmqtools.protocol.headers.codec import Header, HeaderField, decode_header, header_fields
from tests.contract.vector_spec import Case, Spec, outcome
from tests.support.headers import HEADERS

# Java's four classes with one field are one here.
_OURS = dict.fromkeys(
    (
        "GetMaxOffsetResponseHeader",
        "GetMinOffsetResponseHeader",
        "QueryConsumerOffsetResponseHeader",
        "SearchOffsetResponseHeader",
    ),
    "OffsetResponseHeader",
)
_BOXED = {"int": "Integer", "long": "Long", "boolean": "Boolean"}
_NAMES = {bool: "Boolean", str: "String"}
_NUMBERS = {32: "Integer", 64: "Long"}
# Also legal where Java checks more: the end of a transaction, a topic's filter type.
_LEGAL = {"Integer": "8", "Long": "8", "Boolean": "true", "String": "SINGLE_TAG"}


def header_class(name: str) -> type[Header]:
    """Our class for Java's."""
    return HEADERS[_OURS.get(name, name)]


def fields_of_header(case: Case) -> Case:
    made = header_class(case["header"])
    code = getattr(made, "code", None)
    return {
        "code": None if code is None else int(code),
        "codeName": None if code is None else code.name,
        "fields": [show_field(case["header"], made, field) for field in header_fields(made)],
    }


def show_field(name: str, made: type[Header], field: HeaderField) -> Case:
    owners = (each for each in reversed(made.__mro__) if field.name in inspect.get_annotations(each))
    owner = next(owners)
    return {
        "name": field.wire,
        "type": java_type(made, field),
        "required": field.required,
        "declaredIn": name if owner is made else owner.__name__,
    }


def java_type(made: type[Header], field: HeaderField) -> str:
    base, marks = plain_hint(typing.get_type_hints(made, include_extras=True)[field.name])
    if base is int:
        return next(_NUMBERS[mark.count] for mark in marks if hasattr(mark, "count"))
    return _NAMES.get(base, base.__name__)


def plain_hint(hint: Any) -> tuple[type, tuple[Any, ...]]:
    """A field's type, without None, and its marks."""
    if typing.get_origin(hint) is Annotated:
        base, marks = plain_hint(hint.__origin__)
        return base, (*marks, *hint.__metadata__)
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return plain_hint(next(each for each in typing.get_args(hint) if each is not type(None)))
    return hint, ()


def sorted_and_boxed(answer: Case) -> Case:
    """Here a number that may be missing is None: Java's boxed type. The order of fields has no meaning."""
    fields = [field | {"type": _BOXED.get(field["type"], field["type"])} for field in answer["fields"]]
    return answer | {"fields": sorted(fields, key=lambda field: str(field["name"]))}


def field_text(case: Case) -> Case:
    """A header that is complete but for one field's text, decoded."""
    made = header_class(case["header"])
    texts: dict[str, str | None] = {
        field.wire: _LEGAL.get(java_type(made, field), "LOWER")
        for field in header_fields(made)
        if field.required
    }
    given = {key: text for key, text in (texts | {case["field"]: case["given"]}).items() if text is not None}
    names = {field.wire: field.name for field in header_fields(made)}
    return outcome(lambda: plain(getattr(decode_header(made, given), names[case["field"]])))


def plain(value: object) -> object:
    return value.name if isinstance(value, Enum) else value


def unread_is_refused(answer: Case) -> Case:
    """Where Java logs and leaves a field as it was (null, 0, false), the header is refused here."""
    return {"error": ProtocolError.__name__} if not answer.get("value", True) else answer


SPECS: Mapping[str, tuple[Spec, ...]] = {
    "header_fields": (
        Spec(
            inputs=("header",),
            adapter=fields_of_header,
            labels=("package", "fastCodes"),  # fast: in which order Java writes, which has no meaning
            normal=sorted_and_boxed,
        ),
    ),
    "header_required": (
        Spec(
            inputs=("header", "field", "given"),
            adapter=field_text,
            labels=("type",),
            errors={"java.lang.NullPointerException": ProtocolError},
            normal=unread_is_refused,
        ),
    ),
}
