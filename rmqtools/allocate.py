"""Strategies that share a topic's queues among the members of a group, and how to make one from text.

    share(AllocateAveragely(), "group", "10.0.0.1@1", queues, client_ids)  # this member's queues
    strategy_of("PINNED_BY_IP", ips="10.0.0.1,10.0.0.2", when_absent="nobody")
    strategy_of("my_package.rooms:AllocateByRack", racks="a,b")

A strategy of your own is any object of the shape :class:`AllocateMessageQueueStrategy`.
"""

import importlib
import inspect
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from rmqtools.config import unknown_name
from rmqtools.errors import ConfigError
from rmqtools.model.queue import MessageQueue
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
    "AVG": AllocateAveragely,
    "AVG_BY_CIRCLE": AllocateAveragelyByCircle,
    "CONFIG": AllocateByConfig,
    "MACHINE_ROOM": AllocateByMachineRoom,
    "MACHINE_ROOM_NEARBY": AllocateMachineRoomNearby,
    "CONSISTENT_HASH": AllocateByConsistentHash,
    "PINNED_BY_IP": AllocatePinnedByIp,
    "PINS": AllocateByPins,
}
"""The one name of each strategy, for command line and Spark options."""


def strategy_of(text: str, /, **options: Any) -> AllocateMessageQueueStrategy:
    """Make a strategy from its one name, or from ``module:Class``.

    Args:
        text: a name of :data:`STRATEGIES`, ``MACHINE_ROOM_NEARBY-`` and the inner one's name, or
            ``module:Class`` (a class, or any function that returns a strategy).
        options: what the class is made with; names match without regard to case, ``_`` and ``-``. Text is
            parsed for our own strategies (``ips="10.0.0.1,10.0.0.2"``, ``inner="AVG_BY_CIRCLE"``,
            ``queues='{"topic":{"broker-a":[0,1]}}'``, ``resolver="module:Class"``); a class of the user's
            gets it as it is.

    Raises:
        ConfigError: no such name, module, class or option; an option missing or of the wrong form.
    """
    if ":" in text:
        return _checked(text, _call(text, _load(text), options))
    outer, dash, inner = text.partition("-")
    if dash and outer == "MACHINE_ROOM_NEARBY":
        return _checked(text, _call(text, partial(STRATEGIES[outer], strategy_of(inner)), options, _PARSERS))
    if text not in STRATEGIES:
        raise ConfigError(unknown_name("allocation strategy", text, [*STRATEGIES, "module:Class"]))
    return _checked(text, _call(text, STRATEGIES[text], options, _PARSERS))


def _call(
    text: str,
    make: Callable[..., Any],
    options: Mapping[str, Any],
    parsers: Mapping[str, Callable[[str], Any]] | None = None,
) -> Any:
    """Call a class or function with the options, each under the parameter it means."""
    signature = _signature(text, make)
    parameters = signature.parameters
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    known, values = {_plain(name): name for name in parameters}, {}
    for option, value in options.items():
        if (name := known.get(_plain(option), option if takes_any else None)) is None:
            raise ConfigError(unknown_name(f"option of strategy {text}", option, list(parameters)))
        values[name] = _parsed(name, value, parsers or {})
    try:
        signature.bind(**values)
    except TypeError as error:
        raise ConfigError(f"strategy {text}: {error}; it takes {', '.join(parameters) or 'none'}") from error
    return make(**values)


def _signature(text: str, make: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(make)
    except ValueError as error:  # some classes written in C
        raise ConfigError(f"strategy {text}: {error}: wrap it in a function") from error


def _parsed(name: str, value: Any, parsers: Mapping[str, Callable[[str], Any]]) -> Any:
    if not isinstance(value, str) or name not in parsers:
        return value
    try:
        return parsers[name](value)
    except ConfigError:
        raise
    except (ValueError, TypeError, AttributeError) as error:
        raise ConfigError(f"option {name}={value!r}: {error}") from error


def _load(text: str) -> Callable[..., Any]:
    """The class or function that ``module:Class`` names."""
    module, _, name = text.partition(":")
    try:
        found: Any = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ConfigError(f"strategy {text!r}: {error}: want module:Class that can be imported") from error
    if not callable(found):
        raise ConfigError(f"strategy {text!r}: a {type(found).__name__}: want a class, or a function")
    make: Callable[..., Any] = found
    return make


def _checked(text: str, made: Any) -> AllocateMessageQueueStrategy:
    if not isinstance(getattr(made, "name", None), str) or not callable(getattr(made, "allocate", None)):
        raise ConfigError(f"strategy {text!r}: {made!r} is none: want a text 'name' and a method 'allocate'")
    strategy: AllocateMessageQueueStrategy = made
    return strategy


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _texts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _queues(text: str) -> tuple[MessageQueue, ...]:
    """``{topic: {broker: [queue id, ...]}}``."""
    return tuple(
        MessageQueue(topic, broker_name, int(queue_id))
        for topic, brokers in json.loads(text).items()
        for broker_name, queue_ids in brokers.items()
        for queue_id in queue_ids
    )


_PARSERS: Mapping[str, Callable[[str], Any]] = {
    "consumer_idcs": _texts,
    "inner": strategy_of,
    "ips": _texts,
    "queues": _queues,
    "resolver": lambda text: _call(text, _load(text), {}),
    "virtual_nodes": int,
}
