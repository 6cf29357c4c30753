"""Properties of a message as one text: ``name \\x01 value \\x02``, repeated.

Source of the rule: MessageDecoder.string2messageProperties and messageProperties2String (Java client).
"""

from collections.abc import Mapping

from rmqtools.compiled import twins

NAME_VALUE_SEPARATOR = "\x01"
PROPERTY_SEPARATOR = "\x02"


def parse_properties(text: str | None) -> dict[str, str]:
    """Parse properties. Pairs without name, value or separator are skipped; the last \\x02 may be missing.

    A value may contain \\x01: only the first one of a pair separates.
    """
    properties = {}
    for pair in (text or "").split(PROPERTY_SEPARATOR):
        name, _, value = pair.partition(NAME_VALUE_SEPARATOR)
        if name and value:
            properties[name] = value
    return properties


def decode_properties(data: bytes) -> dict[str, str]:
    """Parse properties as they are stored, in UTF-8; bytes that are none are replaced."""
    if twins is not None:
        properties: dict[str, str] = twins.decode_properties(data)
        return properties
    return parse_properties(data.decode("utf-8", "replace"))


def format_properties(properties: Mapping[str, str]) -> str:
    """Format properties in their order. Writes empty values too, although every reader drops them."""
    return "".join([f"{name}\x01{value}\x02" for name, value in properties.items()])
