"""Client settings, from the options that reads and writes share.

Access keys come from options, else from a file, else from the driver's environment.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeVar

from rmqtools import ClientConfig
from rmqtools.config.text import match_name
from rmqtools.errors import ConfigError
from spark_connector.options.catalog_table import refuse_no_options
from spark_connector.options.option import GivenOptions, Where

_Config = TypeVar("_Config", bound=ClientConfig)
CREDENTIALS_FILE: Final = "credentialsFile"
ENVIRONMENT: Final = {"accesskey": "ROCKETMQ_ACCESS_KEY", "secretkey": "ROCKETMQ_SECRET_KEY"}
_IN_FILES: Final = ("accesskey", "secretkey", "securitytoken")


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


def with_credentials(
    settings: Mapping[str, str], *, credentials_file: str | None, environment: Mapping[str, str]
) -> dict[str, str]:
    """Add the access keys to client settings that lack them.

    Args:
        settings: client settings from options, by plain name (lower case, no separators).
        credentials_file: path of a file with lines ``accessKey: ...`` and ``secretKey: ...`` (``=`` also
            works), as in the server's ``conf/tools.yml``.
        environment: the process's; used only if neither options nor a file have keys.

    Raises:
        ConfigError: two sources at once, half a pair, or an unreadable file. No text contains a key.
    """
    given = [name for name in ENVIRONMENT if name in settings]
    if credentials_file is not None:
        if given:
            raise ConfigError("options 'credentialsFile' and 'accessKey', 'secretKey' exclude one another")
        return {**settings, **_read_keys(credentials_file)}
    found = {
        name: environment[variable] for name, variable in ENVIRONMENT.items() if environment.get(variable)
    }
    if given or not found:
        return dict(settings)
    if len(found) < len(ENVIRONMENT):
        raise ConfigError(f"environment variables {' and '.join(ENVIRONMENT.values())} go together: set both")
    return {**settings, **found}


def _read_keys(file: str) -> dict[str, str]:
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"option 'credentialsFile' = {file!r}: cannot be read: {reason}") from None
    found = dict(_key_value(line) for line in lines if line.strip() and not line.lstrip().startswith("#"))
    keys = {name: found[name] for name in _IN_FILES if found.get(name)}
    if not ENVIRONMENT.keys() <= keys.keys():
        raise ConfigError(
            f"option 'credentialsFile' = {file!r}: want a line accessKey: ... and a line secretKey: ..."
        )
    return keys


def _key_value(line: str) -> tuple[str, str]:
    """Parse ``accessKey: alice`` or ``accessKey=alice``; the first separator counts. Quotes are removed."""
    at = min((line.index(mark) for mark in ":=" if mark in line), default=len(line))
    name, value = line[:at], line[at + 1 :]
    return match_name(name.strip()), value.strip().strip("'\"")
