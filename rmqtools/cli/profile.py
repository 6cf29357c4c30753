"""``rmqtools profile``: named sets of settings in ``~/.config/rmqtools/config.toml``.

    current = "staging"

    [profiles.staging]
    name_server = "10.0.0.5:9876"
    access_key = "ops"
    secret_key_file = "~/.config/rmqtools/staging.key"

Secrets stand in files of their own, or in the environment: never on a command line, which every user of the
machine can read.
"""

import json
import os
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from rmqtools import ClientConfig, ProducerConfig, PullConsumerConfig
from rmqtools.cli.pairs import pairs
from rmqtools.cli.printing import print_json, print_table, say
from rmqtools.errors import ConfigError
from rmqtools.safe_file import PRIVATE, replace_text
from rmqtools.unknown_name import unknown_name

SECRETS = ("secret_key", "security_token", "tls_key_password")
_FILE_SUFFIX = "_file"
_CURRENT = re.compile(r"^current\s*=.*\n?", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z0-9_-]+")

app = typer.Typer(
    no_args_is_help=True,
    help="Named settings in $RMQTOOLS_CONFIG, else ~/.config/rmqtools/config.toml. Options and the "
    "environment take precedence over them. RMQTOOLS_PROFILE chooses one for a single command.",
)

Name = Annotated[str, typer.Argument(help="The profile.", show_default=False)]


def profile_settings(name: str | None = None) -> dict[str, str]:
    """Return the settings of a profile, by default of the chosen one; none if none is. Reads secret files.

    Raises:
        ConfigError: there is no such profile, or one of its settings cannot be used.
    """
    document = _document()
    chosen = name or os.environ.get("RMQTOOLS_PROFILE") or document.get("current")
    if not chosen:
        return {}
    given = _profile(document, chosen)
    return read_secret_files({name: _text(value) for name, value in given.items()})


def read_secret_files(settings: Mapping[str, str]) -> dict[str, str]:
    """Replace ``secret_key_file`` and the like by what the files contain.

    Raises:
        ConfigError: a file cannot be read.
    """
    read: dict[str, str] = {}
    for name, value in settings.items():
        secret = name.removesuffix(_FILE_SUFFIX)
        if name.endswith(_FILE_SUFFIX) and secret in SECRETS:
            try:
                read[secret] = Path(value).expanduser().read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise ConfigError(f"{name} {value!r} cannot be read: {error}") from error
        else:
            read[name] = value
    return read


@app.command("list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the profiles, and mark the one in use."""
    document = _document()
    current = os.environ.get("RMQTOOLS_PROFILE") or document.get("current")
    rows = [
        {"profile": name, "name_server": given.get("name_server"), "current": name == current}
        for name, given in _profiles(document).items()
    ]
    if as_json:
        print_json(rows)
    elif not rows:
        say(f"no profiles in {_path()}: rmqtools profile create NAME --name-server HOST:PORT")
    else:
        print_table(["profile", "name server", "current"], [tuple(row.values()) for row in rows])


@app.command()
def show(name: Annotated[str | None, typer.Argument(help="Default: the one in use.")] = None) -> None:
    """Show a profile's settings as JSON; secrets are hidden."""
    document = _document()
    chosen = name or os.environ.get("RMQTOOLS_PROFILE") or document.get("current")
    if not chosen:
        raise ConfigError("no profile is in use: rmqtools profile use NAME")
    given = _profile(document, chosen)
    print_json({key: "(hidden)" if key in SECRETS else value for key, value in given.items()})


@app.command()
def use(name: Name) -> None:
    """Use a profile from now on."""
    _profile(_document(), name)
    _write(f"current = {_toml(name)}\n" + _CURRENT.sub("", _text_of_file(), count=1))
    say(f"profile {name} is in use")


@app.command()
def create(
    name: Name,
    name_server: Annotated[
        str, typer.Option("--name-server", "-n", metavar="HOST:PORT", help="The name server.")
    ],
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting; several times.")
    ] = None,
) -> None:
    """Add a profile to the file. Creates the file if there is none."""
    if not _NAME.fullmatch(name):
        raise ConfigError(f"profile {name!r}: want letters, digits, _ and -")
    if name in _profiles(_document()):
        raise ConfigError(f"profile {name!r} exists in {_path()}: edit it there")
    given = {"name_server": name_server} | pairs(settings)
    for key in given:
        refuse_secret(key, "--set")
    _check(given)
    lines = "".join(f"{key} = {_toml(value)}\n" for key, value in given.items())
    _write(f"{_text_of_file()}\n[profiles.{name}]\n{lines}".lstrip("\n"))
    say(f"profile {name} is in {_path()}: rmqtools profile use {name}")


def refuse_secret(name: str, option: str) -> None:
    """Raise a ConfigError for a secret on a command line."""
    if name in SECRETS:
        raise ConfigError(
            f"{option} {name}=...: every user of this machine can read a command line; set "
            f"RMQTOOLS_{name.upper()} or RMQTOOLS_{name.upper()}_FILE, or {name}_file of a profile"
        )


def _path() -> Path:
    if given := os.environ.get("RMQTOOLS_CONFIG"):
        return Path(given)
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config", "rmqtools", "config.toml")


def _text_of_file() -> str:
    """Return the text of the file; empty: there is none."""
    try:
        return _path().read_text(encoding="utf-8-sig")  # some editors begin files with a BOM
    except FileNotFoundError:
        return ""


def _document() -> dict[str, Any]:
    try:
        return tomllib.loads(_text_of_file())
    except (OSError, ValueError) as error:
        raise ConfigError(f"{_path()} cannot be read: {error}: correct it, or set RMQTOOLS_CONFIG") from error


def _toml(text: str) -> str:
    """Return a text as TOML writes it. JSON's escapes of characters beyond U+FFFF are none of TOML's."""
    return json.dumps(text, ensure_ascii=False)


def _profiles(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    profiles = document.get("profiles", {})
    if not isinstance(profiles, dict) or not all(isinstance(given, dict) for given in profiles.values()):
        raise ConfigError(f"{_path()}: want a table [profiles.NAME] for each profile")
    return profiles


def _profile(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    profiles = _profiles(document)
    if name not in profiles:
        raise ConfigError(f"{unknown_name('profile', name, list(profiles))} in {_path()}")
    _check(profiles[name])
    if any(secret in profiles[name] for secret in SECRETS) and _path().stat().st_mode & (
        stat.S_IRWXG | stat.S_IRWXO
    ):
        raise ConfigError(f"{_path()} has a secret and others may read it: chmod 600 {_path()}")
    return profiles[name]


def _check(given: Mapping[str, object]) -> None:
    kinds = (ClientConfig, ProducerConfig, PullConsumerConfig)
    known = {f.name for kind in kinds for f in fields(kind)} | {name + _FILE_SUFFIX for name in SECRETS}
    for name in given:
        if name not in known:
            raise ConfigError(f"{_path()}: {unknown_name('setting', name, sorted(known))}")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _write(text: str) -> None:
    """Replace the file in one step, readable by its owner only.

    Raises:
        ConfigError: no command could read the new text.
    """
    path = _path()
    try:
        tomllib.loads(text.encode().decode())
    except ValueError as error:
        raise ConfigError(
            f"{path} stays as it is: with this change it could not be read ({error}): edit it there"
        ) from error
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_text(path, text, mode=PRIVATE)
