"""Strategies that share a topic's queues among a group's members, and a function that makes one from text.

    share(AllocateAveragely(), "group", "10.0.0.1@1", queues, client_ids)  # this member's queues
    strategy_of("PINNED_BY_IP", ips="10.0.0.1,10.0.0.2", when_absent="nobody")
    strategy_of("my_package.rooms:AllocateByRack", racks="a,b")

A consumer takes the name of a built-in strategy that needs no options, too: ``strategy="AVG_BY_CIRCLE"``.
Your own strategy is any object with the attributes of :class:`AllocateMessageQueueStrategy`.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from rmqtools.errors import ConfigError
from rmqtools.plug_in import Load, Role, load_any, match_options
from rmqtools.policy.allocate.addresses import client_address
from rmqtools.policy.allocate.averagely import AllocateAveragely
from rmqtools.policy.allocate.averagely_by_circle import AllocateAveragelyByCircle
from rmqtools.policy.allocate.by_config import AllocateByConfig
from rmqtools.policy.allocate.by_consistent_hash import AllocateByConsistentHash
from rmqtools.policy.allocate.by_machine_room import AllocateByMachineRoom
from rmqtools.policy.allocate.by_pins import AllocateByPins
from rmqtools.policy.allocate.machine_room_nearby import (
    AllocateMachineRoomNearby,
    MachineRoomResolver,
    RoomByPrefix,
)
from rmqtools.policy.allocate.pinned_by_ip import AllocatePinnedByIp
from rmqtools.policy.allocate.pins import NO_PINS, Pins, newest
from rmqtools.policy.allocate.share import share
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy
from rmqtools.policy.allocate.strategy_table import BUILT_IN, Named, built_in, check_strategy, split_nearby

__all__ = [
    "NO_PINS",
    "STRATEGIES",
    "AllocateAveragely",
    "AllocateAveragelyByCircle",
    "AllocateByConfig",
    "AllocateByConsistentHash",
    "AllocateByMachineRoom",
    "AllocateByPins",
    "AllocateMachineRoomNearby",
    "AllocateMessageQueueStrategy",
    "AllocatePinnedByIp",
    "MachineRoomResolver",
    "Pins",
    "RoomByPrefix",
    "client_address",
    "newest",
    "share",
    "strategy_of",
]

STRATEGIES: Mapping[str, Callable[..., AllocateMessageQueueStrategy]] = {
    name: entry.make for name, entry in BUILT_IN.items()
}
"""Each strategy by its name at consumers, on the command line and in Spark options."""

_STRATEGY = Role("strategy", {"allocate": 4})
_RESOLVER = Role("machine-room resolver", {"broker_deploy_in": 1, "consumer_deploy_in": 1})
_NO_PARSERS: Mapping[str, Callable[[str], Any]] = {}


def strategy_of(text: str, /, **options: Any) -> AllocateMessageQueueStrategy:
    """Make a strategy from its one name, or from ``module:Class``.

    Args:
        text: a name of :data:`STRATEGIES`, ``MACHINE_ROOM_NEARBY-`` and the inner one's name, or
            ``module:Class`` (a class, or any function that returns a strategy).
        options: arguments of the class; case, ``_`` and ``-`` in their names do not matter. Texts are
            parsed for the strategies of this package (``ips="10.0.0.1,10.0.0.2"``,
            ``inner="AVG_BY_CIRCLE"``, ``queues='{"topic":{"broker-a":[0,1]}}'``,
            ``resolver="module:Class"``). A class of your own gets the text unchanged.

    Raises:
        ConfigError: an unknown name, module, class or option; an option is missing or has a wrong form.
    """
    return make_strategy(text, options, load_any)


def make_strategy(text: str, options: Mapping[str, Any], load: Load) -> AllocateMessageQueueStrategy:
    """Make a strategy as :func:`strategy_of`; ``load`` loads every ``module:Class``, also in the options.

    Raises:
        ConfigError: as :func:`strategy_of`.
    """
    if ":" in text:
        make = load(text, what=f"strategy {text!r}", role=_STRATEGY)
        return check_strategy(text, _call(text, make, options))
    if (inner := split_nearby(text)) is not None:
        nearby = partial(AllocateMachineRoomNearby, make_strategy(inner, {}, load))
        return check_strategy(text, _call(text, nearby, options, _parsers("MACHINE_ROOM_NEARBY", load)))
    return check_strategy(text, _call(text, built_in(text).make, options, _parsers(text, load)))


def _call(
    text: str,
    make: Callable[..., Any],
    options: Mapping[str, Any],
    parsers: Mapping[str, Callable[[str], Any]] = _NO_PARSERS,
) -> Any:
    """Call a class or function with the options, each under the parameter it means."""
    values = match_options(make, options, what=f"strategy {text}", kind=f"option of strategy {text}")
    return make(**{name: _parsed(name, value, parsers) for name, value in values.items()})


def _parsed(name: str, value: Any, parsers: Mapping[str, Callable[[str], Any]]) -> Any:
    if not isinstance(value, str) or name not in parsers:
        return value
    try:
        return parsers[name](value)
    except ConfigError:
        raise
    except (ValueError, TypeError, AttributeError) as error:
        raise ConfigError(f"option {name}={value!r}: {error}") from error


def _parsers(name: str, load: Load) -> Mapping[str, Callable[[str], Any]]:
    """Return how texts become the options of a built-in strategy."""
    named: Mapping[Named, Callable[[str], Any]] = {
        Named.STRATEGY: lambda text: make_strategy(text, {}, load),
        Named.RESOLVER: lambda text: _call(text, load(text, what=f"resolver {text!r}", role=_RESOLVER), {}),
    }
    return {
        option: named[parse] if isinstance(parse, Named) else parse
        for option, parse in built_in(name).options.items()
    }
