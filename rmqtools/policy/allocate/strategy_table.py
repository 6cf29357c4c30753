"""The table of the built-in strategies: name, class, texts that their options take, name of Java's class.

Command line, Spark options, consumers and documentation read it. A strategy of a user's own is in no table:
``rmqtools.allocate`` makes it from ``module:Class``.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, field, fields
from enum import Enum
from typing import Any, Final, Literal, TypeAlias

from rmqtools.errors import ConfigError
from rmqtools.model.queue import MessageQueue
from rmqtools.model.record import record
from rmqtools.policy.allocate.averagely import AllocateAveragely
from rmqtools.policy.allocate.averagely_by_circle import AllocateAveragelyByCircle
from rmqtools.policy.allocate.by_config import AllocateByConfig
from rmqtools.policy.allocate.by_consistent_hash import AllocateByConsistentHash
from rmqtools.policy.allocate.by_machine_room import AllocateByMachineRoom
from rmqtools.policy.allocate.by_pins import AllocateByPins
from rmqtools.policy.allocate.machine_room_nearby import AllocateMachineRoomNearby
from rmqtools.policy.allocate.pinned_by_ip import AllocatePinnedByIp
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy
from rmqtools.unknown_name import unknown_name

Parse = Callable[[str], Any]


class Named(Enum):
    """Options whose text names something that ``rmqtools.allocate`` makes."""

    STRATEGY = "a strategy"
    RESOLVER = "a machine-room resolver, as module:Class"


@record(kw_only=False)
class BuiltIn:
    """One strategy of this package.

    Attributes:
        name: its name in text; equal to the strategy's ``name`` (MACHINE_ROOM_NEARBY adds the inner one's).
        make: its class, a dataclass; the class's docstring is the documentation.
        options: how texts become options; options that are missing here take any value as it is.
        java: the name of Java's class; None: the strategy is our own.
    """

    name: str
    make: Callable[..., AllocateMessageQueueStrategy]
    options: Mapping[str, Parse | Named] = field(default_factory=dict)
    java: str | None = None

    @property
    def about(self) -> str:
        """The first line of the class's docstring."""
        return (self.make.__doc__ or "").partition("\n")[0]

    @property
    def required(self) -> list[str]:
        """The options without a default."""
        return [
            one.name
            for one in fields(self.make)  # type: ignore[arg-type]  # a dataclass
            if one.init and one.default is MISSING and one.default_factory is MISSING
        ]


def parse_texts(text: str) -> tuple[str, ...]:
    """Parse texts separated by commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def parse_queues(text: str) -> tuple[MessageQueue, ...]:
    """Parse ``{topic: {broker: [queue id, ...]}}``."""
    return tuple(
        MessageQueue(topic, broker_name, int(queue_id))
        for topic, brokers in json.loads(text).items()
        for broker_name, queue_ids in brokers.items()
        for queue_id in queue_ids
    )


_INNER: Final = {"inner": Named.STRATEGY}
BUILT_IN: Final = {
    one.name: one
    for one in (
        BuiltIn("AVG", AllocateAveragely, java="AllocateMessageQueueAveragely"),
        BuiltIn("AVG_BY_CIRCLE", AllocateAveragelyByCircle, java="AllocateMessageQueueAveragelyByCircle"),
        BuiltIn("CONFIG", AllocateByConfig, {"queues": parse_queues}, "AllocateMessageQueueByConfig"),
        BuiltIn(
            "MACHINE_ROOM",
            AllocateByMachineRoom,
            {"consumer_idcs": parse_texts},
            "AllocateMessageQueueByMachineRoom",
        ),
        BuiltIn(
            "MACHINE_ROOM_NEARBY",
            AllocateMachineRoomNearby,
            _INNER | {"resolver": Named.RESOLVER},
            "AllocateMachineRoomNearby",
        ),
        BuiltIn(
            "CONSISTENT_HASH",
            AllocateByConsistentHash,
            {"virtual_nodes": int},
            "AllocateMessageQueueConsistentHash",
        ),
        BuiltIn("PINNED_BY_IP", AllocatePinnedByIp, _INNER | {"ips": parse_texts}),
        BuiltIn("PINS", AllocateByPins, _INNER),
    )
}
"""Each built-in strategy by its name."""

JAVA_NAMES: Final[Mapping[str, str]] = {
    one.java: one.name for one in BUILT_IN.values() if one.java is not None
}
"""Our name by the name of Java's class."""


StrategyName: TypeAlias = Literal[
    "AVG",
    "AVG_BY_CIRCLE",
    "CONSISTENT_HASH",
    "MACHINE_ROOM_NEARBY",
    "MACHINE_ROOM_NEARBY-AVG",
    "MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE",
    "MACHINE_ROOM_NEARBY-CONSISTENT_HASH",
]
"""The names that a consumer takes: of strategies that need no options."""


def built_in(name: str) -> BuiltIn:
    """Return the entry of a name.

    Raises:
        ConfigError: there is none; the text has the nearest name.
    """
    if name not in BUILT_IN:
        raise ConfigError(unknown_name("allocation strategy", name, [*BUILT_IN, "module:Class"]))
    return BUILT_IN[name]


def split_nearby(name: str) -> str | None:
    """Return the inner strategy's name of ``MACHINE_ROOM_NEARBY-INNER``; None: the name has no inner one."""
    outer, dash, inner = name.partition("-")
    return inner if dash and outer == "MACHINE_ROOM_NEARBY" else None


def strategy_named(given: AllocateMessageQueueStrategy | str | None) -> AllocateMessageQueueStrategy:
    """Return a consumer's strategy: the object given, or a built-in one by its name; None: AVG.

    Raises:
        ConfigError: the name is unknown, the strategy needs options, or it is no strategy.
    """
    if given is None:
        return AllocateAveragely()
    if not isinstance(given, str):
        return check_strategy(str(given), given)
    if ":" in given:
        raise ConfigError(
            f"strategy {given!r}: a consumer takes names of built-in strategies: {_remedy(given)}"
        )
    if (inner := split_nearby(given)) is not None:
        return AllocateMachineRoomNearby(strategy_named(inner))
    if required := built_in(given).required:
        raise ConfigError(
            f"strategy {given!r} needs the options {', '.join(required)}: "
            f"{_remedy(given, *(f'{name}=...' for name in required))}"
        )
    return built_in(given).make()


def check_strategy(text: str, made: Any) -> AllocateMessageQueueStrategy:
    """Return a strategy that has what every strategy must have; ``text`` is for the error.

    Raises:
        ConfigError: it has not, or is a class, or has PINS inside.
    """
    is_complete = isinstance(getattr(made, "name", None), str) and callable(getattr(made, "allocate", None))
    if isinstance(made, type):
        raise ConfigError(f"strategy {made.__name__} is a class: want an object, {made.__name__}(...)")
    if not is_complete:
        raise ConfigError(f"strategy {text!r}: {made!r} is none: want a text 'name' and a method 'allocate'")
    strategy: AllocateMessageQueueStrategy = made
    _check_inner(strategy)
    return strategy


def _check_inner(strategy: AllocateMessageQueueStrategy) -> None:
    """Refuse PINS inside another strategy: only the outermost strategy gets the pins of the group."""
    if not isinstance(strategy, AllocateByPins | AllocatePinnedByIp | AllocateMachineRoomNearby):
        return
    inner = strategy.inner
    if isinstance(inner, AllocateByPins) and inner.pins is None:
        raise ConfigError(
            f"strategy {strategy.name}: PINS inside it would never get pins: want PINS around it, "
            "AllocateByPins(inner=...)"
        )
    _check_inner(inner)


def _remedy(name: str, *options: str) -> str:
    return f"pass rmqtools.allocate.strategy_of({', '.join([repr(name), *options])})"
