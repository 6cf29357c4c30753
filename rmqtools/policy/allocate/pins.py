"""Pins: the machines that a group is pinned to, as text in the name servers' KV config.

    {"expires_at":"2026-08-01T12:30:00+00:00","ips":["192.168.0.6"],"set_by":"ops","version":7,"when_absent":"nobody"}

Name servers do not replicate pins, so their copies may differ; :func:`newest` decides. For the same reason
pins are never deleted, because an old copy would bring them back: ``Pins.cleared`` is written instead.

Everybody who reaches a name server can write there. A version that no operator can come to, or a repair in
the future, would beat every later one for ever: :func:`why_ignored` names such copies.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from rmqtools.errors import ConfigError
from rmqtools.model.record import record
from rmqtools.policy.allocate.addresses import parse_networks
from rmqtools.policy.allocate.pinned_by_ip import WhenAbsent, check_when_absent

_MAX_TEXT_LENGTH = 64 * 1024
_MAX_VERSION = 2**63 - 1
LARGEST_JUMP = 2**32
"""The highest version that counts. Versions rise by one from 0, so a higher one was not written by us."""
_CLOCKS_DIFFER = timedelta(minutes=5)  # of operators' machines and members
_TIMES = ("expires_at", "set_at", "repaired_at")
_NEVER = datetime.min.replace(tzinfo=UTC)
_ADDED_LATER = ("repaired_at", "set_at", "set_from")  # keys that are left out while empty


@record(kw_only=False)
class Pins:
    """One version of a group's pins.

    Attributes:
        version: a higher one is newer; 0 is :data:`NO_PINS`, which is never written.
        ips: addresses and networks; empty: not pinned, all members share.
        when_absent: as in :class:`AllocatePinnedByIp`; None: the value of each member's strategy.
        expires_at: from this time on ``ips`` count as empty; with a time zone, kept as UTC; None: never.
        set_by: the author, for people.
        set_at: when it was written, for people; None: not kept by versions that wrote no time.
        set_from: the address of the machine that wrote it, as that machine gives it; for people.
        repaired_at: when all copies were last rewritten: they beat all that were written before.
    """

    version: int
    ips: Sequence[str] = ()
    when_absent: WhenAbsent | None = None
    expires_at: datetime | None = None
    set_by: str = ""
    set_at: datetime | None = field(default=None, compare=False)
    set_from: str = field(default="", compare=False)
    repaired_at: datetime | None = None

    def __post_init__(self) -> None:
        if type(self.version) is not int or not 0 <= self.version <= _MAX_VERSION:
            raise ConfigError(f"version={self.version!r}: want a whole number from 0 to 2**63 - 1")
        for name in ("set_by", "set_from"):
            if not isinstance(getattr(self, name), str):
                raise ConfigError(f"{name}={getattr(self, name)!r}: want text")
        if self.when_absent is not None:
            check_when_absent(self.when_absent)
        parse_networks(self.ips)
        object.__setattr__(self, "ips", tuple(self.ips))
        for name in _TIMES:
            if (moment := getattr(self, name)) is not None:
                object.__setattr__(self, name, _as_utc(name, moment))

    @classmethod
    def cleared(cls, version: int, *, set_by: str = "") -> "Pins":
        """Return the empty version that ``pin clear`` writes; ``version`` must be higher than all others."""
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
        texts = {name: moment and moment.isoformat() for name in _TIMES for moment in [getattr(self, name)]}
        values = asdict(self) | texts
        kept = {name: value for name, value in values.items() if value or name not in _ADDED_LATER}
        return json.dumps(kept, sort_keys=True, separators=(",", ":"))

    def at(self, now: datetime) -> "Pins":
        """Return the pins that are valid at a time: these, or if expired this version without machines."""
        expired = self.expires_at is not None and now >= self.expires_at
        return replace(self, ips=()) if expired else self


NO_PINS = Pins(0)
"""The name server has no pins for the group. (If no name server answers, the value is None instead.)"""


def newest(first: Pins, *others: Pins) -> Pins:
    """Return the valid pins among several copies: the last repair's, then the highest version's.

    Of equal versions the greater text's. The caller must report two different pins with one version (two
    operators at once).
    """
    return max((first, *others), key=lambda pins: (pins.repaired_at or _NEVER, pins.version, pins.format()))


def why_ignored(pins: Pins, now: datetime) -> str | None:
    """Return why a copy does not count, for people; None: it counts."""
    if pins.version > LARGEST_JUMP:
        why = f"version {pins.version} is above {LARGEST_JUMP}, which no operator can have reached"
    elif pins.repaired_at is not None and pins.repaired_at > now + _CLOCKS_DIFFER:
        why = f"version {pins.version} was repaired in the future, at {pins.repaired_at.isoformat()}"
    else:
        return None
    return f"{why}: 'rmqtools group check --repair' rewrites it"


def repaired(pins: Pins, now: datetime) -> Pins:
    """Return the pins to write everywhere so that they beat all other copies, in members of any age."""
    version = pins.version + 1 if pins.version < LARGEST_JUMP // 2 else 1
    return replace(pins, version=version, repaired_at=now)


def _as_utc(name: str, moment: datetime) -> datetime:
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise ConfigError(f"{name}={moment!r}: want a datetime with a time zone")
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ConfigError(f"{name}={moment!r}: {error}") from error


def _pins_of(given: Any) -> Pins:
    ips = given["ips"]
    times = {name: given.get(name) for name in _TIMES}
    if not isinstance(ips, list) or not all(isinstance(ip, str) for ip in ips):
        raise TypeError(f"ips={ips!r}: want a list of text")
    return Pins(
        version=given["version"],
        ips=ips,
        when_absent=given.get("when_absent"),
        set_by=given.get("set_by", ""),
        set_from=given.get("set_from", ""),
        **{name: text and datetime.fromisoformat(text) for name, text in times.items()},
    )
