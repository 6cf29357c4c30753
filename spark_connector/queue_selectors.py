"""The queue selector that the option ``queueSelector`` names."""

import importlib
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from rmqtools.config import unknown_name
from rmqtools.errors import ConfigError
from rmqtools.select import (
    MessageQueueSelector,
    SelectMessageQueueByHash,
    SelectMessageQueueByMachineRoom,
    SelectMessageQueueByRandom,
)

MakeSelector = Callable[[], MessageQueueSelector]
ROUND_ROBIN: Final = "round-robin"
_SELECTORS: Final[Mapping[str, Callable[..., MessageQueueSelector]]] = {
    "hash": SelectMessageQueueByHash,
    "random": SelectMessageQueueByRandom,
    "machine-room": SelectMessageQueueByMachineRoom,
}
_SETTINGS: Final[Mapping[str, tuple[str, ...]]] = {"hash": (), "random": (), "machine-room": ("room",)}


def selector_maker(text: str, settings: Mapping[str, str]) -> MakeSelector | None:
    """What makes the selector, once in every task; None: queues in turn.

    Args:
        text: ``round-robin``, ``hash``, ``random``, ``machine-room``, or ``module:Class``: any class or
            function whose result is called as ``(queues, message, arg)``.
        settings: what follows ``queueSelector.`` in option names, and their texts.

    Raises:
        ConfigError: no such selector, or one that cannot be made of the settings.
    """
    name = text.strip()
    if name.lower() == ROUND_ROBIN:
        if settings:
            raise ConfigError(f"option 'queueSelector.{next(iter(settings))}': {ROUND_ROBIN} has no settings")
        return None
    if ":" in name:
        make = _load(name)
        return _bound(name, make, settings, tuple(inspect.signature(make).parameters))
    if name.lower() not in _SELECTORS:
        known = [ROUND_ROBIN, *_SELECTORS, "module:Class"]
        raise ConfigError(f"option 'queueSelector': {unknown_name('selector', name, known)}")
    return _bound(name, _SELECTORS[name.lower()], settings, _SETTINGS[name.lower()])


def _bound(
    name: str, make: Callable[..., Any], settings: Mapping[str, str], parameters: tuple[str, ...]
) -> MakeSelector:
    known, values = {_plain(parameter): parameter for parameter in parameters}, {}
    for setting, value in settings.items():
        if _plain(setting) not in known:
            options = [f"queueSelector.{parameter}" for parameter in parameters]
            raise ConfigError(unknown_name("option", f"queueSelector.{setting}", options))
        values[known[_plain(setting)]] = value
    try:
        inspect.signature(make).bind(**values)
    except TypeError as error:
        raise ConfigError(f"option 'queueSelector' = {name!r}: {error}: set it by queueSelector.*") from None
    if not callable(made := make(**values)):
        raise ConfigError(f"option 'queueSelector' = {name!r} makes {made!r}: want a callable")
    return partial(make, **values)


def _load(name: str) -> Callable[..., Any]:
    module, _, attribute = name.partition(":")
    try:
        found: Any = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ConfigError(f"option 'queueSelector' = {name!r}: {error}: want module:Class") from None
    if not callable(found):
        raise ConfigError(f"option 'queueSelector' = {name!r} is {found!r}: want a class, or a function")
    make: Callable[..., Any] = found
    return make


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")
