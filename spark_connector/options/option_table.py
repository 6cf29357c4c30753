"""The options of ``format("rocketmq")``: one table for checks, errors and documentation.

Spark passes all options as text with lower-case names, before it is known whether the source will read or
write: :func:`parse_options` checks names and values; the modules ``*_settings`` check which options belong
together.
"""

from collections.abc import Mapping
from typing import Any, Final

from rmqtools.errors import ConfigError
from rmqtools.unknown_name import name_hint
from spark_connector.options.catalog_table import refuse_table_properties
from spark_connector.options.client_options import CLIENT_OPTIONS
from spark_connector.options.kafka_names import option_hint
from spark_connector.options.option import GivenOption, GivenOptions, Option
from spark_connector.options.read_options import READ_OPTIONS, STREAM_OPTIONS
from spark_connector.options.write_options import WRITE_OPTIONS

OPTIONS: Final = (*CLIENT_OPTIONS, *READ_OPTIONS, *STREAM_OPTIONS, *WRITE_OPTIONS)

_BY_NAME: Final = {option.name.lower(): option for option in OPTIONS if option.prefix is None}
_ESCAPED_BAR: Final = "\\|"
_FAMILIES: Final = tuple(option for option in OPTIONS if option.prefix is not None)


def parse_options(raw: Mapping[str, str]) -> GivenOptions:
    """Check names and values.

    Raises:
        ConfigError: an unknown name (with the nearest known one), an invalid value, or a catalog table.
    """
    refuse_table_properties(raw)
    return tuple(_parse_option(name, text) for name, text in raw.items())


def option_values(given: GivenOptions) -> dict[str, Any]:
    """Values of all single options by name: the given one, else the default."""
    defaults = {
        option.name: None if option.default is None else option.parse(option.default)
        for option in _BY_NAME.values()
    }
    return defaults | {one.option.name: one.value for one in given if one.option.prefix is None}


def describe_options() -> str:
    """Return the table as Markdown, for the documentation."""
    head = (
        '# Options of `format("rocketmq")`\n\n| option | for | value | default | |\n|---|---|---|---|---|\n'
    )
    rows = ((f"`{one.name}`", one.where.value, one.kind, one.default or "", one.help) for one in OPTIONS)
    return head + "".join(
        f"| {' | '.join(cell.replace('|', _ESCAPED_BAR) for cell in row)} |\n" for row in rows
    )


def _parse_option(name: str, text: str) -> GivenOption:
    option, key = _find_option(name)
    try:
        return GivenOption(option, option.parse(text), key)
    except ValueError as error:
        shown = "***" if option.secret else repr(text)
        raise ConfigError(f"option {option.name!r} = {shown}: {error}; want {option.kind}") from None


def _find_option(name: str) -> tuple[Option, str]:
    lower = name.lower()
    if lower in _BY_NAME:
        return _BY_NAME[lower], ""
    for option in _FAMILIES:
        assert option.prefix is not None
        if lower.startswith(option.prefix.lower()) and len(lower) > len(option.prefix):
            return option, name[len(option.prefix) :]
    hint = option_hint(name) or name_hint(name, [option.name for option in OPTIONS])
    raise ConfigError(f"unknown option {name!r} for format rocketmq ({hint})")
