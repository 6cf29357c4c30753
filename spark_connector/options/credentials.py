"""Access keys: from options, else from a file, else from the driver's environment."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rmqtools.config.text import match_name
from rmqtools.errors import ConfigError

CREDENTIALS_FILE: Final = "credentialsFile"
ENVIRONMENT: Final = {"accesskey": "ROCKETMQ_ACCESS_KEY", "secretkey": "ROCKETMQ_SECRET_KEY"}
_IN_FILES: Final = ("accesskey", "secretkey", "securitytoken")


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
        return {**settings, **_read(credentials_file)}
    found = {
        name: environment[variable] for name, variable in ENVIRONMENT.items() if environment.get(variable)
    }
    if given or not found:
        return dict(settings)
    if len(found) < len(ENVIRONMENT):
        raise ConfigError(f"environment variables {' and '.join(ENVIRONMENT.values())} go together: set both")
    return {**settings, **found}


def _read(file: str) -> dict[str, str]:
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"option 'credentialsFile' = {file!r}: cannot be read: {reason}") from None
    found = dict(_pair(line) for line in lines if line.strip() and not line.lstrip().startswith("#"))
    keys = {name: found[name] for name in _IN_FILES if found.get(name)}
    if not ENVIRONMENT.keys() <= keys.keys():
        raise ConfigError(
            f"option 'credentialsFile' = {file!r}: want a line accessKey: ... and a line secretKey: ..."
        )
    return keys


def _pair(line: str) -> tuple[str, str]:
    """Parse ``accessKey: alice`` or ``accessKey=alice``; the first separator counts. Quotes are removed."""
    at = min((line.index(mark) for mark in ":=" if mark in line), default=len(line))
    name, value = line[:at], line[at + 1 :]
    return match_name(name.strip()), value.strip().strip("'\"")
