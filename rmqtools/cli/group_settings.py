"""``rmqtools group create`` and ``alter``: a group's settings on all brokers."""

from collections.abc import Mapping, Sequence
from typing import Annotated, get_type_hints

import typer

from rmqtools import Admin, ClientConfig
from rmqtools.cli.change import DryRun, Yes
from rmqtools.cli.connection import NameServer, Settings, client_config, partial_admin
from rmqtools.cli.group import Group, unknown_group
from rmqtools.cli.pairs import pairs
from rmqtools.cli.printing import print_table, say
from rmqtools.config.checked import kind_of
from rmqtools.config.text import match_name, parse_value
from rmqtools.errors import ConfigError, RocketMQError
from rmqtools.group import GroupSettings, SubscriptionGroupConfig
from rmqtools.unknown_name import unknown_name

KINDS = {name: kind for name, kind in get_type_hints(GroupSettings).items() if kind in (bool, int)}
_BY_MATCH = {match_name(name): name for name in KINDS}

NewGroup = Annotated[str, typer.Argument(help="The consumer group.", show_default=False)]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--change",
        "-c",
        metavar="NAME=VALUE",
        help=f"A setting of the group; several times. Settings: {', '.join(KINDS)}.",
    ),
]


def create(
    group: NewGroup, changes: Changes = None, name_server: NameServer = "", settings: Settings = None
) -> None:
    """Create a group on all masters. An existing one is an error: see alter.

    Settings that are not given get their default.

        rmqtools group create billing -c retry_max_times=3
    """
    wanted = group_settings(changes)
    with Admin(client_config(name_server, settings, ClientConfig)) as admin:
        if group in admin.fetch_group_list():
            raise RocketMQError(f"group {group!r} exists: change it with rmqtools group alter {group}")
        admin.create_group(group, **wanted)
        brokers = sorted(admin.fetch_group_configs(group))
    say(f"group {group} is created on {', '.join(brokers)}")


def alter(
    group: Group,
    changes: Changes = None,
    name_server: NameServer = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    settings: Settings = None,
) -> None:
    """Change a group's settings on all masters; those not given stay as they are on each.

    Without --change it shows them.
    """
    wanted = group_settings(changes)
    config = client_config(name_server, settings, ClientConfig)
    with partial_admin(config, partial=dry_run or not wanted) as admin:
        configs = admin.fetch_group_configs(group)
        if not configs:
            raise unknown_group(group, admin.fetch_group_list())
        if not wanted:
            _print_settings(configs)
            return
        rows = _differences(configs, wanted)
        if rows:
            print_table(["broker", "setting", "before", "after"], rows)
        else:
            say(f"group {group} has these settings already")
        if dry_run or not rows:
            return
        admin.create_group(group, **wanted)
    say(f"group {group} is changed")


def group_settings(texts: Sequence[str] | None) -> GroupSettings:
    """Return ``NAME=VALUE`` texts as settings of a group; names in whatever case, with or without ``_``.

    Raises:
        ConfigError: an unknown name, or a value that is no number, or neither true nor false.
    """
    found = GroupSettings()
    for text, value in pairs(texts).items():
        name = _BY_MATCH.get(match_name(text))
        if name is None:
            raise ConfigError(unknown_name("setting of a group", text, KINDS))
        found[name] = parse_value(name, value, kind_of(KINDS[name]))  # type: ignore[literal-required]  # one of its names
    return found


def _differences(
    configs: Mapping[str, SubscriptionGroupConfig], wanted: GroupSettings
) -> list[tuple[str, str, object, object]]:
    return [
        (broker, name, getattr(config, name), value)
        for broker, config in sorted(configs.items())
        for name, value in wanted.items()
        if getattr(config, name) != value
    ]


def _print_settings(configs: Mapping[str, SubscriptionGroupConfig]) -> None:
    brokers = sorted(configs)
    rows = [(name, *(getattr(configs[broker], name) for broker in brokers)) for name in KINDS]
    print_table(["setting", *brokers], rows)
