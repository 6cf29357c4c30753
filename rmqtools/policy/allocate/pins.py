"""Pins: the machines that a group is pinned to, as text in the name servers' KV config.

    {"expires_at":"2026-08-01T12:30:00+00:00","ips":["192.168.0.6"],"set_by":"ops","version":7,"when_absent":"nobody"}

Name servers do not replicate pins, so their copies may differ; :func:`newest` decides. For the same reason
pins are never deleted, because an old copy would bring them back: ``Pins.cleared`` is written instead.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from rmqtools.errors import ConfigError
from rmqtools.policy.allocate.addresses import parse_networks
from rmqtools.policy.allocate.pinned_by_ip import WhenAbsent, check_when_absent

_MAX_TEXT_LENGTH = 64 * 1024
_MAX_VERSION = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Pins:
    """One version of a group's pins.

    Attributes:
        version: a higher one is newer; 0 is :data:`NO_PINS`, which is never written.
        ips: addresses and networks; empty: not pinned, all members share.
        when_absent: as in :class:`AllocatePinnedByIp`; None: the value of each member's strategy.
        expires_at: from this time on ``ips`` count as empty; with a time zone, kept as UTC; None: never.
        set_by: the author, for people.
    """

    version: int
    ips: Sequence[str] = ()
    when_absent: WhenAbsent | None = None
    expires_at: datetime | None = None
    set_by: str = ""

    def __post_init__(self) -> None:
        if type(self.version) is not int or not 0 <= self.version <= _MAX_VERSION:
            raise ConfigError(f"version={self.version!r}: want a whole number from 0 to 2**63 - 1")
        if not isinstance(self.set_by, str):
            raise ConfigError(f"set_by={self.set_by!r}: want text")
        if self.when_absent is not None:
            check_when_absent(self.when_absent)
        parse_networks(self.ips)
        object.__setattr__(self, "ips", tuple(self.ips))
        if self.expires_at is not None:
            object.__setattr__(self, "expires_at", _as_utc(self.expires_at))

    @classmethod
    def cleared(cls, version: int, *, set_by: str = "") -> "Pins":
        """The empty version that ``pin clear`` writes; ``version`` must be higher than all others."""
        return cls(version, set_by=set_by)

    @classmethod
    def parse(cls, text: str) -> "Pins":
        """Parse the text of :meth:`format`. Ignores unknown keys, so that it can read newer versions.

        Raises:
            ConfigError: wrong form. The caller must keep the last pins it knows: this is not "no pins".
        """
        if len(text) > _MAX_TEXT_LENGTH:
            raise ConfigError(f"pins of {len(text)} characters: want at most {_MAX_TEXT_LENGTH}")
        try:
            return _pins_of(json.loads(text))
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise ConfigError(f"pins {text[:200]!r} are garbled: {error!r}") from error

    def format(self) -> str:
        """Return the text for the KV config: ASCII, keys sorted, equal for equal pins."""
        expires_at = self.expires_at and self.expires_at.isoformat()
        return json.dumps(asdict(self) | {"expires_at": expires_at}, sort_keys=True, separators=(",", ":"))

    def at(self, now: datetime) -> "Pins":
        """Return the pins that are valid at a time: these, or if expired this version without machines."""
        expired = self.expires_at is not None and now >= self.expires_at
        return replace(self, ips=()) if expired else self


NO_PINS = Pins(0)
"""The name server has no pins for the group. (If no name server answers, the value is None instead.)"""


def newest(first: Pins, *others: Pins) -> Pins:
    """Return the valid pins among several copies: the highest version; of equal versions the greater text.

    Two different pins with one version (two operators at once) must be reported by the caller.
    """
    return max((first, *others), key=lambda pins: (pins.version, pins.format()))


def _as_utc(moment: datetime) -> datetime:
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise ConfigError(f"expires_at={moment!r}: want a datetime with a time zone")
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ConfigError(f"expires_at={moment!r}: {error}") from error


def _pins_of(given: Any) -> Pins:
    ips, expires_at = given["ips"], given.get("expires_at")
    if not isinstance(ips, list) or not all(isinstance(ip, str) for ip in ips):
        raise TypeError(f"ips={ips!r}: want a list of text")
    return Pins(
        version=given["version"],
        ips=ips,
        when_absent=given.get("when_absent"),
        expires_at=None if expires_at is None else datetime.fromisoformat(expires_at),
        set_by=given.get("set_by", ""),
    )
