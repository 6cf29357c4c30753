"""Pins in the KV config of the name servers: read from all of them, written to all of them.

Name servers do not copy pins to each other. A reader takes the highest version among all answers and the pins
it knew before; a missing or unreadable answer is ignored and never means "no pin". A writer writes the next
higher version to every name server and reads it back. Copies that ``why_ignored`` names count as unreadable.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from rmqtools.clock import as_time
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.connection.large_bodies import parse_aside
from rmqtools.errors import BrokerError, ConfigError, ProtocolError, RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.codes import ResponseCode
from rmqtools.model.names import namespace_of, without_this_namespace
from rmqtools.policy.allocate.pins import LARGEST_JUMP, NO_PINS, Pins, newest, repaired, why_ignored
from rmqtools.protocol.headers.codec import decode_header
from rmqtools.protocol.headers.topic import (
    GetKVConfigRequestHeader,
    GetKVConfigResponseHeader,
    GetKVListByNamespaceRequestHeader,
    PutKVConfigRequestHeader,
)
from rmqtools.protocol.wire.bodies import parse_kv_table
from rmqtools.protocol.wire.command import RemotingCommand, request

log = get_logger(__name__)

KV_NAMESPACE = "RMQTOOLS_PINS"


class PinStore:
    """The pins of groups on the name servers of one client. The key is the group with its namespace."""

    def __init__(self, client: ClientCore) -> None:
        self._client = client
        self._conflicts: set[tuple[str, int]] = set()  # group and version: each conflict is reported once

    async def fetch(self, group: str, last: Pins | None) -> Pins | None:
        """Fetch the current pins from all name servers.

        Args:
            group: consumer group.
            last: the pins known before; None: none known.

        Returns:
            The newest of ``last`` and all answers; ``last`` if no name server answered. None means "not
            known", :data:`NO_PINS` means "no pins". Expiry is not checked here: see :meth:`Pins.at`.
        """
        return self.newest_of(group, await self.fetch_copies(group), last)

    def newest_of(
        self, group: str, copies: Mapping[str, Pins | RocketMQError], last: Pins | None
    ) -> Pins | None:
        """Choose the newest of the copies and ``last``; log unreadable and conflicting copies."""
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
        """Each name server's copy by address, or the reason it has none. All are asked at the same time."""
        addrs = await self._client.name_server.addrs()
        copies = await asyncio.gather(*(self._fetch_copy(addr, group) for addr in addrs))
        return dict(zip(addrs, copies, strict=True))

    async def fetch_groups(self) -> list[str]:
        """Return groups of this client's namespace with pins, or a tombstone, on any name server.

        Raises:
            RocketMQError: no name server answered.
        """
        header = GetKVListByNamespaceRequestHeader(namespace=KV_NAMESPACE)
        names: set[str] = set()
        errors: list[RocketMQError] = []
        addrs = await self._client.name_server.addrs()
        for addr in addrs:
            try:
                if (answer := await self._ask(addr, request(header))) is not None:
                    names |= (await parse_aside(parse_kv_table, answer.body)).keys()
            except RocketMQError as error:
                errors.append(error)
        if len(errors) == len(addrs):
            raise errors[0]
        namespace = self._client.config.namespace
        ours = [name for name in names if not namespace or namespace_of(name) == namespace]
        return sorted(without_this_namespace(name, namespace) for name in ours)

    async def put(self, group: str, pins: Pins) -> Pins:
        """Write pins to every name server, with the version after the highest that any of them has.

        Args:
            group: consumer group.
            pins: the pins to write; their version is ignored.

        Returns:
            The written pins, read back from every name server.

        Raises:
            RocketMQError: some name servers do not have the pins; the text gives each with its reason. If
                another one has them, they are in force already. Or no higher version counts.
        """
        copies = await self.fetch_copies(group)
        valid = newest(NO_PINS, *(copy for copy in copies.values() if isinstance(copy, Pins)))
        if valid.version >= LARGEST_JUMP:
            raise RocketMQError(
                f"pins of group {group!r} have version {valid.version}, and no higher one counts: "
                "'rmqtools group check --repair' lets versions begin again"
            )
        return await self._put_everywhere(group, self._signed(pins, valid), list(copies))

    async def repair(self, group: str) -> Pins | None:
        """Write the valid pins to every name server, so that they beat all copies written before.

        Returns:
            The written pins; None: all copies were equal, and nothing was written.

        Raises:
            RocketMQError: a name server does not answer: nothing was written. Or see :meth:`put`.
        """
        copies = await self.fetch_copies(group)
        found = list(copies.values())
        valid = newest(NO_PINS, *(copy for copy in found if isinstance(copy, Pins)))
        if all(copy == valid for copy in found) and valid.version < LARGEST_JUMP:
            return None
        for addr, copy in copies.items():
            if isinstance(copy, RocketMQError) and not isinstance(copy, ConfigError):
                raise RocketMQError(
                    f"pins of group {group!r} are not repaired, because a name server cannot say what it "
                    f"has: {addr}: {copy}; repeat when all of them answer"
                ) from copy
        return await self._put_everywhere(group, repaired(valid, self._now()), list(copies))

    async def clear(self, group: str, *, set_by: str = "") -> Pins:
        """Write a tombstone. After a deletion, an old copy on a name server that was away would apply again.

        Raises:
            RocketMQError: see :meth:`put`.
        """
        return await self.put(group, Pins.cleared(0, set_by=set_by))

    def _signed(self, pins: Pins, valid: Pins) -> Pins:
        """Return the pins to write after ``valid``: next version, when, and from where."""
        return replace(
            pins,
            version=valid.version + 1,
            repaired_at=valid.repaired_at,
            set_at=pins.set_at or self._now(),
            set_from=pins.set_from or self._client.client_ip,
        )

    async def _put_everywhere(self, group: str, fresh: Pins, addrs: Sequence[str]) -> Pins:
        failures = await asyncio.gather(*(self._put_copy(addr, group, fresh) for addr in addrs))
        if named := {addr: failure for addr, failure in zip(addrs, failures, strict=True) if failure}:
            raise RocketMQError(_why_not_put(group, fresh, named, total=len(addrs)))
        log.info("pins_put", group=group, version=fresh.version, ips=list(fresh.ips))
        return fresh

    def _now(self) -> datetime:
        return as_time(self._client.clock.now_ms())

    def _report_conflict(self, group: str, found: Pins, known: Sequence[Pins]) -> None:
        """Log two different pins of one version: all readers choose the same, but operators must know."""
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
            pins = Pins.parse(value)
            if why := why_ignored(pins, self._now()):
                return ConfigError(f"ignored: {why}")
            return pins
        except RocketMQError as error:
            return error

    async def _put_copy(self, addr: str, group: str, pins: Pins) -> str | None:
        """Write to one name server and check it; return the reason of a failure, or None."""
        key = self._client.wire_topic(group)
        header = PutKVConfigRequestHeader(namespace=KV_NAMESPACE, key=key, value=pins.format())
        try:
            await self._client.remoting.invoke_ok(addr, request(header))
        except RocketMQError as error:
            return str(error)
        copy = await self._fetch_copy(addr, group)
        if isinstance(copy, Pins) and copy.format() == pins.format():
            return None
        found = f"pins of version {copy.version}" if isinstance(copy, Pins) else str(copy)
        return f"accepted it, but shows {found}: another writer may be active"

    async def _ask(self, addr: str, command: RemotingCommand) -> RemotingCommand | None:
        """Return the answer; None: the name server has no such entry."""
        try:
            return await self._client.remoting.invoke_ok(addr, command)
        except BrokerError as error:
            if error.code == ResponseCode.QUERY_NOT_FOUND:
                return None
            if error.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                await self._client.name_server.check_is_no_broker(addr)
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
