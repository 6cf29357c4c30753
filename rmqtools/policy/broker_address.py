"""Choice of a broker set's address, and its mapping: ``broker_address_map``.

Source of the rules: MQClientInstance.findBrokerAddressInSubscribe, -Publish, -Admin (Java client).
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from rmqtools.errors import ConfigError
from rmqtools.model.route import MASTER_ID

BrokerAddrTable = Mapping[str, Mapping[int, str]]


class FoundBroker(NamedTuple):
    """An address, and whether it is a slave's."""

    broker_addr: str
    is_slave: bool


def find_in_subscribe(
    table: BrokerAddrTable, broker_name: str, broker_id: int = MASTER_ID, *, only_this_broker: bool = False
) -> FoundBroker | None:
    """Find the broker of this id; for a slave also the next id; else any, unless ``only_this_broker``."""
    addrs = table.get(broker_name) or {}
    is_slave = broker_id != MASTER_ID
    addr = addrs.get(broker_id) or (addrs.get(broker_id + 1) if is_slave else None)
    if addr:
        return FoundBroker(addr, is_slave)
    return None if only_this_broker else find_in_admin(table, broker_name)


def find_in_publish(table: BrokerAddrTable, broker_name: str) -> str | None:
    """Find the master: only it accepts messages."""
    return (table.get(broker_name) or {}).get(MASTER_ID)


def find_in_admin(table: BrokerAddrTable, broker_name: str) -> FoundBroker | None:
    """Find the broker of the set with the lowest id."""
    addrs = table.get(broker_name)
    if not addrs:
        return None
    lowest = min(addrs)
    return FoundBroker(addrs[lowest], lowest != MASTER_ID)


def map_address(addr: str, rules: Mapping[str, str] | Callable[[str], str]) -> str:
    """Return the address to connect to instead of ``addr``; ``addr`` itself where no rule matches.

    An exact rule wins over the longest ``prefix*``, a prefix over ``*:port``, and ``*`` comes last. A target
    ``host:*`` keeps the port. Brackets around an IPv6 host and upper case make no difference.

    Raises:
        ConfigError: the rules are a callable, and it raised or returned no text.
    """
    if not isinstance(rules, Mapping):
        return _called(addr, rules)
    if not rules:
        return addr
    wanted = _comparable(addr)
    matching = [rule for rule in rules if _matches(_comparable(rule), wanted)]
    if not matching:
        return addr
    target = rules[max(matching, key=lambda rule: _rank(_comparable(rule)))]
    host, _, port = target.rpartition(":")
    return f"{host}:{addr.rpartition(':')[2]}" if port == "*" else target


def _matches(rule: str, addr: str) -> bool:
    if rule.startswith("*:"):
        return addr.rpartition(":")[2] == rule[2:]
    return addr.startswith(rule[:-1]) if rule.endswith("*") else addr == rule


def _rank(rule: str) -> tuple[bool, bool, int]:
    """Exact rules first, then prefixes, the longer before the shorter; ``*:port`` stands before ``*``."""
    is_port, is_prefix = rule.startswith("*:"), rule.endswith("*")
    return not (is_port or is_prefix), is_prefix and rule != "*", -1 if rule == "*" else len(rule)


def _comparable(addr: str) -> str:
    return addr.replace("[", "").replace("]", "").lower()


def _called(addr: str, rules: Callable[[str], str]) -> str:
    try:
        mapped = rules(addr)
    except Exception as error:  # a callback of the user
        raise ConfigError(f"broker_address_map raised for {addr!r}: {error!r}") from error
    if not isinstance(mapped, str):
        raise ConfigError(f"broker_address_map returned {mapped!r} for {addr!r}: want host:port as text")
    return mapped


def describe_mapping(addr: str, mapped: str) -> str:
    """Describe an unreachable broker's address for an error, and name the option that changes it."""
    if mapped == addr:
        return (
            "the address is the route's; if this machine reaches the broker elsewhere, as behind NAT, in "
            f"Docker or Kubernetes, set broker_address_map, e.g. {{{addr!r}: 'host:port'}}"
        )
    return f"the route gave {addr}, broker_address_map made it {mapped}: correct that rule"
