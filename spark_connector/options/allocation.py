"""Shares queues among readers, as a group shares them among members; pure.

Two uses: the read's own Spark tasks are the members (``readers``) and together read every queue once; or the
read takes the queues of one member of a live group (``asMember``).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from rmqtools import MessageQueue
from rmqtools.allocate import AllocateByPins, AllocateMessageQueueStrategy, make_strategy, share
from rmqtools.errors import ConfigError
from rmqtools.log import get_logger
from spark_connector.options.option import GivenOptions
from spark_connector.options.plug_ins import load_listed
from spark_connector.options.queue_json import places

log = get_logger(__name__)

_GROUP: Final = "spark"  # required by the interface; our strategies ignore it
_DEFAULTS: Final = {  # queues without a reader are handled here, see _check_complete
    "PINNED_BY_IP": {"whenabsent": "nobody"},
    "PINS": {"whenabsent": "nobody"},
}
_FOR_READERS: Final = ("readers", "readerIds")
_SPLITS: Final = ("minPartitions", "maxRecordsPerPartition")


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """Sharing of queues among readers.

    Attributes:
        allocator: the strategy, as the user named it; None: the live group's own (``as_member`` only).
        settings: settings of the strategy.
        readers: number of readers; 0: ``as_member`` is given.
        reader_ids: their client ids; empty: derived from this machine's address.
        allow_unassigned: whether queues may stay unread.
        verify_host: whether a task warns if it runs on another address than its reader id says.
        as_member: client id or address of a member of the live group.
    """

    allocator: str | None
    settings: dict[str, str] = field(default_factory=dict)
    readers: int = 0
    reader_ids: tuple[str, ...] = ()
    allow_unassigned: bool = False
    verify_host: bool = False
    as_member: str | None = None

    @property
    def strategy(self) -> AllocateMessageQueueStrategy:
        """Make the strategy.

        Raises:
            ConfigError: its module is not listed or cannot be imported, or these settings do not fit.
        """
        name = self.allocator or "AVG"
        try:
            return make_strategy(name, _DEFAULTS.get(name, {}) | self.settings, load_listed)
        except ConfigError as error:
            raise ConfigError(f"option 'allocator' = {name!r}: {error}") from error

    def ids_at(self, address: str) -> tuple[str, ...]:
        """Return the readers' client ids, for a driver at ``address``."""
        return self.reader_ids or tuple(f"{address}@reader-{number}" for number in range(self.readers))


def allocation_of(given: GivenOptions, values: Mapping[str, Any]) -> Allocation | None:
    """Return the sharing that the options request; None: none.

    Raises:
        ConfigError: the options conflict, or the strategy cannot be made.
    """
    settings = {one.key.lower(): one.value for one in given if one.option.name == "allocator.*"}
    _check_options(values, settings)
    if not _has_sharing(values):
        return None
    ids = values["readerIds"] or ()
    allocation = Allocation(
        allocator=values["allocator"],
        settings=settings,
        readers=0 if values["asMember"] else values["readers"] or len(ids),
        reader_ids=ids,
        allow_unassigned=values["allowUnassigned"],
        verify_host=values["allocator.verifyHost"] == "warn",
        as_member=values["asMember"],
    )
    strategy = allocation.strategy  # made once here, so that errors appear at load()
    if allocation.readers and isinstance(strategy, AllocateByPins):
        raise ConfigError(
            "option 'allocator' = 'PINS' follows the pins of a live group, so it goes with 'asMember' only; "
            "pin readers by 'allocator' = 'PINNED_BY_IP' and 'allocator.ips'"
        )
    return allocation


def share_queues(
    allocation: Allocation, queues: Collection[MessageQueue], client_ids: Sequence[str]
) -> dict[str, list[MessageQueue]]:
    """Return the queues of each reader, shared topic by topic as groups do.

    Raises:
        ConfigError: a queue is given to two readers, or to no reader unless that is allowed, or the strategy
            cannot work with these readers.
    """
    strategy = allocation.strategy
    shares: dict[str, list[MessageQueue]] = {client_id: [] for client_id in client_ids}
    for topic_queues in _by_topic(queues):
        for client_id in client_ids:
            shares[client_id] += share(strategy, _GROUP, client_id, topic_queues, client_ids)
    _check_once(allocation, shares)
    _check_complete(allocation, shares, queues)
    return shares


def queues_of_member(
    strategy: AllocateMessageQueueStrategy,
    group: str,
    member: str,
    queues: Collection[MessageQueue],
    client_ids: Sequence[str],
) -> list[MessageQueue]:
    """Return the queues that a member would own if the group used this strategy."""
    return [
        queue
        for topic_queues in _by_topic(queues)
        for queue in share(strategy, group, member, topic_queues, client_ids)
    ]


def _by_topic(queues: Iterable[MessageQueue]) -> list[list[MessageQueue]]:
    return [list(found) for _, found in groupby(sorted(queues), key=lambda queue: queue.topic)]


def _check_once(allocation: Allocation, shares: Mapping[str, Iterable[MessageQueue]]) -> None:
    counts = Counter(queue for share_ in shares.values() for queue in share_)
    if twice := [queue for queue, count in counts.items() if count > 1]:
        owners = ", ".join(client_id for client_id, share_ in shares.items() if twice[0] in share_)
        raise ConfigError(
            f"option 'allocator' = {allocation.allocator or 'AVG'!r} gives {places(twice)} to more than one "
            f"reader ({owners}): use a strategy that shares, or one reader"
        )


def _check_complete(
    allocation: Allocation, shares: Mapping[str, Iterable[MessageQueue]], queues: Iterable[MessageQueue]
) -> None:
    unread = set(queues) - {queue for share_ in shares.values() for queue in share_}
    if not unread:
        return
    if not allocation.allow_unassigned:
        raise ConfigError(
            f"option 'allocator' = {allocation.allocator or 'AVG'!r} gives {places(unread)} to no reader of "
            f"{', '.join(shares)}: they would not be read; set allowUnassigned=true to accept that"
        )
    log.warning("queues_left_unread", queues=places(unread), readers=sorted(shares))


def _has_sharing(values: Mapping[str, Any]) -> bool:
    return any(values[name] for name in (*_FOR_READERS, "asMember"))


def _check_options(values: Mapping[str, Any], settings: Mapping[str, str]) -> None:
    ids, count = values["readerIds"], values["readers"]
    if ids and count and count != len(ids):
        raise ConfigError(f"option 'readers' = {count}, but 'readerIds' names {len(ids)}: drop 'readers'")
    if not _has_sharing(values):
        if values["allocator"] or settings:
            raise ConfigError(
                "option 'allocator' needs 'readers', 'readerIds' or 'asMember': give one of them"
            )
        return
    if values["asMember"] and (ids or count):
        raise ConfigError("options 'asMember' and 'readers' exclude each other: give one")
    if (ids or count) and (split := next((name for name in _SPLITS if values[name]), None)):
        raise ConfigError(f"option {split!r} splits queues, 'readers' shares them as they are: give one")
    if values["asMember"] and values["group"] is None:
        raise ConfigError("option 'asMember' needs option 'group': give the member's group")
