"""Pins in the KV config of the name servers: read from all of them, written to all of them.

Each name server has a copy of its own and none tells another. So a reader takes the highest version of all
answers and of what it knew before; who does not answer, or answers what cannot be read, is left out, which
never means "no pin". A writer writes the version after the highest to every name server and reads it back.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rmqtools.engine.client import ClientCore
from rmqtools.errors import BrokerError, ProtocolError, RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.codes import ResponseCode
from rmqtools.model.names import namespace_of, without_this_namespace
from rmqtools.policy.allocate.pins import NO_PINS, Pins, newest
from rmqtools.protocol.bodies import parse_kv_table
from rmqtools.protocol.command import RemotingCommand, request
from rmqtools.protocol.headers import (
    GetKVConfigRequestHeader,
    GetKVConfigResponseHeader,
    GetKVListByNamespaceRequestHeader,
    PutKVConfigRequestHeader,
    decode_header,
)

log = get_logger(__name__)

KV_NAMESPACE = "RMQTOOLS_PINS"


class PinStore:
    """The pins of groups, by the name servers of one client. The key is the group, its namespace included."""

    def __init__(self, client: ClientCore) -> None:
        self._client = client
        self._conflicts: set[tuple[str, int]] = set()  # group and version: each is reported once

    async def fetch(self, group: str, last: Pins | None) -> Pins | None:
        """The pins that count now.

        Args:
            group: consumer group.
            last: what was known before; None: nothing.

        Returns:
            The newest of ``last`` and all answers; ``last`` itself when nobody answered. None is "not
            known", :data:`NO_PINS` is "none". Not yet looked at for expiry: see :meth:`Pins.at`.
        """
        return self.newest_of(group, await self.fetch_copies(group), last)

    def newest_of(
        self, group: str, copies: Mapping[str, Pins | RocketMQError], last: Pins | None
    ) -> Pins | None:
        """What :meth:`fetch` makes of the name servers' copies; logs what is wrong with them."""
        for addr, copy in copies.items():
            if isinstance(copy, RocketMQError):
                log.warning("pins_not_read", group=group, addr=addr, reason=str(copy))
        known = [copy for copy in (last, *copies.values()) if isinstance(copy, Pins)]
        if not known:
            return None
        found = newest(*known)
        self._report_conflict(group, found, known)
        if found != last:
            log.info("pins_changed", group=group, version=found.version, ips=list(found.ips))
        return found

    async def fetch_copies(self, group: str) -> dict[str, Pins | RocketMQError]:
        """Each name server's copy by its address, or why there is none; they are asked at the same time."""
        addrs = self._client.name_server.addrs
        copies = await asyncio.gather(*(self._fetch_copy(addr, group) for addr in addrs))
        return dict(zip(addrs, copies, strict=True))

    async def fetch_groups(self) -> list[str]:
        """The groups, of this client's namespace, that some name server has pins of (or had: tombstones).

        Raises:
            RocketMQError: none of the name servers could say.
        """
        header = GetKVListByNamespaceRequestHeader(namespace=KV_NAMESPACE)
        names: set[str] = set()
        errors: list[RocketMQError] = []
        for addr in self._client.name_server.addrs:
            try:
                if (answer := await self._ask(addr, request(header))) is not None:
                    names |= parse_kv_table(answer.body).keys()
            except RocketMQError as error:
                errors.append(error)
        if len(errors) == len(self._client.name_server.addrs):
            raise errors[0]
        namespace = self._client.config.namespace
        ours = [name for name in names if not namespace or namespace_of(name) == namespace]
        return sorted(without_this_namespace(name, namespace) for name in ours)

    async def put(self, group: str, pins: Pins) -> Pins:
        """Write pins to every name server, under the version after the highest that any of them has.

        Args:
            group: consumer group.
            pins: what to write; its version is not looked at.

        Returns:
            What was written, read back from every name server.

        Raises:
            RocketMQError: some name servers do not have it, each named with the reason. Where others
                have it, it counts already.
        """
        copies = await self.fetch_copies(group)
        highest = max([copy.version for copy in copies.values() if isinstance(copy, Pins)], default=0)
        fresh = replace(pins, version=highest + 1)
        failures = await asyncio.gather(*(self._put_copy(addr, group, fresh) for addr in copies))
        if named := {addr: failure for addr, failure in zip(copies, failures, strict=True) if failure}:
            raise RocketMQError(_why_not_put(group, fresh, named, total=len(copies)))
        log.info("pins_put", group=group, version=fresh.version, ips=list(fresh.ips))
        return fresh

    async def clear(self, group: str, *, set_by: str = "") -> Pins:
        """Pin a group to nothing: a tombstone, since a copy that was away would revive what is deleted.

        Raises:
            RocketMQError: as :meth:`put`.
        """
        return await self.put(group, Pins.cleared(0, set_by=set_by))

    def _report_conflict(self, group: str, found: Pins, known: Sequence[Pins]) -> None:
        """Two operators at once: all readers take the same of the two, and somebody must be told."""
        texts = {pins.format() for pins in known if pins.version == found.version}
        if len(texts) > 1 and (group, found.version) not in self._conflicts:
            self._conflicts.add((group, found.version))
            log.error("pins_conflict", group=group, taken=found.format(), of=sorted(texts))

    async def _fetch_copy(self, addr: str, group: str) -> Pins | RocketMQError:
        header = GetKVConfigRequestHeader(namespace=KV_NAMESPACE, key=self._client.wire_topic(group))
        try:
            answer = await self._ask(addr, request(header))
            if answer is None:
                return NO_PINS
            value = decode_header(GetKVConfigResponseHeader, answer.ext_fields).value
            if value is None:
                raise ProtocolError(f"{addr} answered without a value")
            return Pins.parse(value)
        except RocketMQError as error:
            return error

    async def _put_copy(self, addr: str, group: str, pins: Pins) -> str | None:
        """Why a name server does not have the pins; None: it has."""
        key = self._client.wire_topic(group)
        header = PutKVConfigRequestHeader(namespace=KV_NAMESPACE, key=key, value=pins.format())
        try:
            await self._client.remoting.invoke_ok(addr, request(header))
        except RocketMQError as error:
            return str(error)
        copy = await self._fetch_copy(addr, group)
        if copy == pins:
            return None
        found = f"pins of version {copy.version}" if isinstance(copy, Pins) else str(copy)
        return f"took it and shows {found}: somebody else writes at the same time?"

    async def _ask(self, addr: str, command: RemotingCommand) -> RemotingCommand | None:
        """The answer; None where the name server has no such entry."""
        try:
            return await self._client.remoting.invoke_ok(addr, command)
        except BrokerError as error:
            if error.code == ResponseCode.QUERY_NOT_FOUND:
                return None
            raise


def _why_not_put(group: str, pins: Pins, failures: Mapping[str, str], *, total: int) -> str:
    reasons = "; ".join(f"{addr}: {reason}" for addr, reason in failures.items())
    counts = (
        "No name server is known to have it"
        if len(failures) == total
        else "The others have it, and members follow it; repeat when all of them answer"
    )
    return (
        f"pins of group {group!r}, version {pins.version}, are not on {len(failures)} of {total} "
        f"name servers: {reasons}. {counts}"
    )
