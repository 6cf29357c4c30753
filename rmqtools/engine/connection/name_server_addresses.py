"""Addresses of the name servers: names with several addresses, lists over HTTP, changes while a client runs.

Source of the rules: DefaultTopAddressing, MQClientInstance.startScheduledTask (every two minutes),
NettyRemotingClient.updateNameServerAddressList (Java client). Ours: a name stands for all its addresses, as
of a headless service, and is resolved again after a failure.
"""

import asyncio
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rmqtools.clock import Clock
from rmqtools.config.client import ClientConfig
from rmqtools.config.text import parse_address, parse_addresses
from rmqtools.engine.connection.single_flight import SharedWork
from rmqtools.errors import ConfigError, RemotingConnectError
from rmqtools.lazy_names import LazyModule
from rmqtools.log import get_logger

if TYPE_CHECKING:
    from rmqtools import name_server_list
else:
    name_server_list = LazyModule("rmqtools.name_server_list")  # few clients fetch a list over HTTP

log = get_logger(__name__)

LIST_INTERVAL = 120.0  # seconds between two fetches of a list over HTTP
_RESOLVE_SECONDS = 3.0
_RESOLVE_PAUSE = 1.0  # seconds until names are resolved again after a failure


class NameServerAddresses:
    """The name servers of one client. Belongs to its event loop."""

    def __init__(self, config: ClientConfig, clock: Clock) -> None:
        self._clock = clock
        self._url = config.name_server_url
        self._given = config.name_servers
        self._addrs = self._given
        self._names: dict[str, str] = {}  # by address: the host name that it was resolved from
        self._fetched = self._url is None
        self._resolve_at = 0.0  # monotonic; names are resolved at the next use from then on
        self._work = SharedWork[None]()

    @property
    def addrs(self) -> tuple[str, ...]:
        """The known addresses, in the order given; empty before a list was fetched."""
        return self._addrs

    def __contains__(self, addr: str) -> bool:
        return addr in self._addrs or addr in self._given

    def host_of(self, addr: str) -> str | None:
        """Return the host name that an address was resolved from, for certificates; None: it is as given."""
        return self._names.get(addr)

    async def current(self) -> tuple[str, ...]:
        """Return the addresses; fetch the list or resolve names first where that is due.

        Raises:
            RemotingConnectError: no list could be fetched yet.
        """
        if not self._fetched:
            await self._work.run("list", self._fetch)
        if self._clock.monotonic() >= self._resolve_at and any(map(_is_name, self._given)):
            await self._work.run("names", self._resolve)
        return self._addrs

    def failed(self) -> None:
        """Note that a name server did not answer: resolve names again at the next use."""
        self._resolve_at = min(self._resolve_at, self._clock.monotonic() + _RESOLVE_PAUSE)

    def replace(self, name_server: str) -> None:
        """Use other name servers from now on.

        Raises:
            ConfigError: an address is not valid.
        """
        self._set(parse_addresses(name_server))

    async def fetch_forever(self) -> None:
        """Fetch a list over HTTP every two minutes; keep the last one while there is no answer."""
        while self._url is not None:
            await asyncio.sleep(LIST_INTERVAL)
            try:
                await self._work.run("list", self._fetch)
            except RemotingConnectError as error:
                log.warning("name_server_list_failed", url=self._url, reason=str(error))

    async def close(self) -> None:
        """Stop what is under way."""
        await self._work.close()

    async def _fetch(self) -> None:
        assert self._url is not None
        try:
            text = await asyncio.to_thread(name_server_list.fetch_name_servers, self._url)
            found = parse_addresses(text)
        except ConfigError as error:
            raise RemotingConnectError(str(error)) from error
        self._fetched = True
        if found != self._given:
            log.info("name_servers_changed", url=self._url, name_servers=";".join(found))
            self._set(found)

    def _set(self, given: tuple[str, ...]) -> None:
        self._given = self._addrs = given
        self._fetched = True
        self._names = {}
        self._resolve_at = 0.0

    async def _resolve(self) -> None:
        """Replace each name that has several addresses by these. One that cannot be resolved stays."""
        self._resolve_at = float("inf")
        given = self._given
        found = [await _addresses(addr) if _is_name(addr) else (addr,) for addr in given]
        if given != self._given:  # replaced meanwhile
            return
        self._names = {
            addr: parse_address(name)[0]
            for name, addrs in zip(given, found, strict=True)
            for addr in addrs
            if addr != name
        }
        addrs = tuple(dict.fromkeys(addr for each in found for addr in each))
        if addrs != self._addrs:
            log.info("name_servers_resolved", name_servers=";".join(addrs))
            self._addrs = addrs


def _is_name(addr: str) -> bool:
    host, _ = parse_address(addr)
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, ValueError):
            continue
        return False
    return True


async def _addresses(addr: str) -> Sequence[str]:
    """Return all addresses of a name, IPv4 if there are any; the name itself if it has fewer than two."""
    host, port = parse_address(addr)
    try:
        async with asyncio.timeout(_RESOLVE_SECONDS):
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, ValueError, RuntimeError, TimeoutError):
        return (addr,)  # connecting to it says why
    hosts = {family: sorted({str(one[4][0]) for one in found if one[0] == family}) for family, *_ in found}
    four, six = hosts.get(socket.AF_INET, []), hosts.get(socket.AF_INET6, [])
    addrs = [f"{ip}:{port}" for ip in four] or [f"[{ip}]:{port}" for ip in six]
    return addrs if len(addrs) > 1 else (addr,)
