"""The topics, groups and brokers of a cluster with their settings, as YAML, and what differs between two.

    topics:
      orders: {read_queues: 4, write_queues: 4, permission: rw, attributes: {message.type: FIFO}}
    groups:
      billing: {retry_max_times: 3}
    brokers:
      masters: {fileReservedTime: '72', deleteWhen: 04 at broker-a, 05 at broker-b}

Queues are those of each broker. Settings of a group that have their default are left out. Where brokers
differ, ``by_broker`` has the settings of each; where only some have a topic or a group, ``brokers`` has their
names. Topics and groups that RocketMQ made for itself are left out, as are retry and dead-letter topics, and
settings of brokers that name one machine or may hold a secret.
"""

import re
from collections.abc import Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from rmqtools import Admin
from rmqtools.cli.group import is_system_group
from rmqtools.cli.printing import plain
from rmqtools.cli.topic import is_usable, perm_text, user_topics
from rmqtools.errors import ConfigError, RemotingError, TopicNotFoundError
from rmqtools.group import SubscriptionGroupConfig
from rmqtools.model.route import TopicConfig

Values = Mapping[str, Any]
_AT_ONCE = 16  # topics asked about at the same time
_KINDS = ("topics", "groups", "brokers")
_OF_A_MACHINE = re.compile(
    "path|port$|^(brokerip.*|brokername|brokerid|rocketmqhome|namesrvaddr)$", re.IGNORECASE
)
_SECRET = re.compile("secret|password|credential|accesskey|authenticationuser", re.IGNORECASE)
_GROUP_IDENTITY = ("group_name", "group_sys_flag")


@dataclass(frozen=True, slots=True)
class Difference:
    """One setting that differs; None where one side does not have the topic, the group or the setting."""

    kind: str
    name: str
    setting: str
    left: Any
    right: Any


def fetch_settings(admin: Admin) -> dict[str, dict[str, Any]]:
    """Return the topics, groups and masters of a cluster with their settings.

    Raises:
        RocketMQError: a broker does not answer, unless ``admin`` is partial.
    """
    info = admin.fetch_cluster_info()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        names = user_topics(admin)
        found = dict(zip(names, pool.map(lambda name: _topic(admin, name), names), strict=True))
    topics = {name: by_broker for name, by_broker in found.items() if by_broker is not None}
    groups = {
        name: {broker: _group_settings(config) for broker, config in configs.items()}
        for name, configs in admin.fetch_all_group_configs().items()
        if not is_system_group(name)
    }
    brokers = info.broker_addr_table.items()
    masters = {name: addr for name, data in brokers if (addr := data.broker_addrs.get(0))}
    answer = masters.keys() - admin.missing_brokers.keys()
    merged = {
        kind: {name: _merged(by_broker, answer) if by_broker else {} for name, by_broker in each.items()}
        for kind, each in (("topics", topics), ("groups", groups))
    }
    configs = {name: admin.fetch_broker_config(masters[name]) for name in sorted(answer)}
    return merged | {"brokers": {"masters": _broker_settings(configs)}}


def check_settings(given: Any, where: str) -> dict[str, dict[str, Any]]:
    """Return what a file contains.

    Raises:
        ConfigError: it is not of the form of an export.
    """
    given = {} if given is None else given  # an empty file
    if isinstance(given, Mapping) and (lacks := given.get("incomplete")):
        raise ConfigError(f"{where} is incomplete: brokers {lacks} did not answer: export again")
    if not isinstance(given, Mapping) or not set(given) <= set(_KINDS):
        raise ConfigError(f"{where}: want {', '.join(_KINDS)}, as rmqtools export writes them")
    parts = {kind: given.get(kind) or {} for kind in _KINDS if kind in given or kind != "brokers"}
    for kind, named in parts.items():
        if not isinstance(named, Mapping) or not all(
            isinstance(one or {}, Mapping) for one in named.values()
        ):
            raise ConfigError(f"{where}: {kind}: want the settings of each by its name")
    return {
        kind: {str(name): dict(one or {}) for name, one in named.items()} for kind, named in parts.items()
    }


def differences(left: Mapping[str, Values], right: Mapping[str, Values]) -> list[Difference]:
    """Return what differs, by kind, name and setting. A file of before 0.4.0 has no settings of brokers."""
    return [
        difference
        for kind in _KINDS
        if kind in left and kind in right
        for name in sorted({*left[kind], *right[kind]})
        for difference in _differing(kind, name, left[kind].get(name), right[kind].get(name))
    ]


def _differing(kind: str, name: str, left: Values | None, right: Values | None) -> list[Difference]:
    if left is None or right is None:
        presence = [None if one is None else "present" for one in (left, right)]
        return [Difference(kind, name, "", *presence)]
    flat = [_flat(left), _flat(right)]
    return [
        Difference(kind, name, setting, flat[0].get(setting), flat[1].get(setting))
        for setting in sorted({*flat[0], *flat[1]})
        if flat[0].get(setting) != flat[1].get(setting)
    ]


def _flat(values: Values, prefix: str = "") -> dict[str, Any]:
    """``{"attributes": {"a": 1}}`` as ``{"attributes a": 1}``; names of attributes have dots."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{prefix}{name} ")
        else:
            found[f"{prefix}{name}"] = value
    return found


def _topic(admin: Admin, name: str) -> dict[str, dict[str, Any]] | None:
    """Return a topic's settings by broker; None: it was deleted meanwhile, or none of its brokers answers."""
    if not is_usable(name):
        return {}
    try:
        configs = admin.fetch_topic_configs(name)
    except TopicNotFoundError:
        return None
    except RemotingError:
        if not admin.missing_brokers:
            raise
        return None
    return {broker: _topic_settings(config) for broker, config in configs.items()}


def _topic_settings(config: TopicConfig) -> dict[str, Any]:
    settings = {
        "read_queues": config.read_queue_nums,
        "write_queues": config.write_queue_nums,
        "permission": perm_text(config.perm),
    }
    return settings | ({"attributes": dict(sorted(config.attributes.items()))} if config.attributes else {})


def _group_settings(config: SubscriptionGroupConfig) -> dict[str, Any]:
    given = plain(config)
    default = plain(SubscriptionGroupConfig(group_name=""))
    changed = {name: value for name, value in given.items() if value != default[name]}
    return {name: value for name, value in changed.items() if name not in _GROUP_IDENTITY}


def _broker_settings(configs: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """Return the settings of masters; of one that differs, a text with those of each."""
    names = sorted({name for config in configs.values() for name in config})
    found: dict[str, Any] = {}
    for name in names:
        if _OF_A_MACHINE.search(name) or _SECRET.search(name):
            continue
        values = {broker: config.get(name) for broker, config in configs.items()}
        each = ", ".join(f"{value} at {broker}" for broker, value in values.items())
        found[name] = each if len({*values.values()}) > 1 else next(iter(values.values()))
    return found


def _merged(by_broker: Mapping[str, dict[str, Any]], masters: Set[str]) -> dict[str, Any]:
    """One set of settings if all brokers have it, else those of each."""
    kinds = list(by_broker.values())
    same = all(one == kinds[0] for one in kinds)
    merged = dict(kinds[0]) if kinds and same else {"by_broker": dict(sorted(by_broker.items()))}
    return merged if set(by_broker) == masters else {**merged, "brokers": sorted(by_broker)}
