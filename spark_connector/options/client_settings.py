"""Client settings, from the options that reads and writes share."""

import os
from collections.abc import Mapping
from typing import TypeVar

from rmqtools import ClientConfig
from rmqtools.config.text import match_name
from rmqtools.errors import ConfigError
from spark_connector.options.catalog_table import refuse_no_options
from spark_connector.options.credentials import CREDENTIALS_FILE, with_credentials
from spark_connector.options.option import GivenOptions, Where

_Config = TypeVar("_Config", bound=ClientConfig)


def refuse_options(given: GivenOptions, *wheres: Where, doing: str) -> None:
    """Refuse options of other operations.

    Raises:
        ConfigError: such an option was given.
    """
    for one in given:
        if one.option.where in wheres:
            raise ConfigError(
                f"option {one.name!r} is for {one.option.where.value} only: leave it out when {doing}"
            )


def client_config(kind: type[_Config], given: GivenOptions, **defaults: str) -> _Config:
    """Make a client's configuration. Errors name the options and the client's settings.

    Args:
        kind: its class.
        given: the options.
        **defaults: the texts of settings that no option gives.
    """
    own = {match_name(name): text for name, text in defaults.items()}
    settings = with_credentials(
        own | _settings(given), credentials_file=_credentials_file(given), environment=os.environ
    )
    if not os.environ.get("NAMESRV_ADDR"):
        refuse_no_options(given)
    _check_name_server(settings)
    try:
        return kind.from_mapping(settings)
    except ConfigError as error:
        names = ", ".join(one.name for one in given if one.option.setting is not None)
        raise ConfigError(f"among the options {names}: {error}") from None


def _credentials_file(given: GivenOptions) -> str | None:
    return next((one.value for one in given if one.option.name == CREDENTIALS_FILE), None)


def _settings(given: GivenOptions) -> dict[str, str]:
    """Client settings by normalized name, so that two options for one setting are detected."""
    settings: dict[str, str] = {}
    origin: dict[str, str] = {}
    for one in given:
        if one.option.setting is None:
            continue
        setting = match_name(one.option.setting + one.key)
        if setting in settings:
            raise ConfigError(f"options {origin[setting]!r} and {one.name!r} are the same: give one")
        settings[setting], origin[setting] = one.value, one.name
    return settings


def _check_name_server(settings: Mapping[str, str]) -> None:
    given = {name: text for name, text in settings.items() if name == match_name("name_server")}
    try:
        ClientConfig.from_mapping(given)
    except ConfigError as error:
        what = f"= {next(iter(given.values()))!r}" if given else "is required, as host:port"
        raise ConfigError(f"option 'nameServer' {what}: {error}") from None
