"""Finds the IP address in a client id, and compares it with addresses and networks."""

import ipaddress
import re
from collections.abc import Collection, Iterable, Sequence

from rmqtools.errors import ConfigError

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

_PID_BEFORE_ADDRESS = re.compile(r"[0-9]+-")


def client_address(client_id: str) -> IPAddress | None:
    """Return the address in a client id: the text before its last ``@``; None if that is not an address.

    ``10.0.0.1@4711#815`` (Java and this package), ``4711-10.0.0.1@DEFAULT`` (C++: process id first),
    ``[fe80::1%eth0]@4711#815`` (Java writes IPv6 in brackets).
    Source of the rule: ClientConfig.buildMQClientId and NetworkUtil.normalizeHostAddress (Java client).
    """
    text = client_id.rpartition("@")[0]
    if pid := _PID_BEFORE_ADDRESS.match(text):
        text = text[pid.end() :]
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def parse_networks(ips: Collection[str]) -> list[IPNetwork]:
    """Parse IPs and CIDRs as networks; an IP is a network with one address.

    Raises:
        ConfigError: not an address or network, or a network with host bits (``10.0.0.1/24``).
    """
    if isinstance(ips, str):
        raise ConfigError(f"ips={ips!r}: want several, e.g. ['10.0.0.1', '10.1.0.0/16']")
    return [_network(ip) for ip in ips]


def members_within(networks: Iterable[IPNetwork], client_ids: Sequence[str]) -> list[str]:
    """Return the members whose address is in one of the networks, in the order given."""
    wanted = tuple(networks)
    addresses = ((client_id, client_address(client_id)) for client_id in client_ids)
    return [
        client_id
        for client_id, address in addresses
        if address is not None and any(address in network for network in wanted)
    ]


def _network(ip: str) -> IPNetwork:
    try:
        return ipaddress.ip_network(ip)
    except ValueError as error:
        raise ConfigError(f"ip {ip!r}: {error}: want e.g. 10.0.0.1 or 10.1.0.0/16") from error
