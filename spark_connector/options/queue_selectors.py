"""The queue selector given by option ``queueSelector``."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from rmqtools.config.text import unknown_name
from rmqtools.errors import ConfigError
from rmqtools.plug_in import load_callable, match_options
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
    """Return a function that makes the selector, called once per task; None: round robin.

    Args:
        text: ``round-robin``, ``hash``, ``random``, ``machine-room``, or ``module:Class``: a class or
            function
            whose result is called as ``(queues, message, arg)``.
        settings: option texts, by the part of their name after ``queueSelector.``.

    Raises:
        ConfigError: unknown selector, or one that cannot be made with the settings.
    """
    name = text.strip()
    if name.lower() == ROUND_ROBIN:
        if settings:
            raise ConfigError(f"option 'queueSelector.{next(iter(settings))}': {ROUND_ROBIN} has no settings")
        return None
    if ":" in name:
        return _bound(name, load_callable(name, what=_named(name)), settings, None)
    if name.lower() not in _SELECTORS:
        known = [ROUND_ROBIN, *_SELECTORS, "module:Class"]
        raise ConfigError(f"option 'queueSelector': {unknown_name('selector', name, known)}")
    return _bound(name, _SELECTORS[name.lower()], settings, _SETTINGS[name.lower()])


def _bound(
    name: str, make: Callable[..., Any], settings: Mapping[str, str], parameters: Sequence[str] | None
) -> MakeSelector:
    values = match_options(make, settings, what=_named(name), names=parameters, prefix="queueSelector.")
    if not callable(made := make(**values)):
        raise ConfigError(f"{_named(name)} makes {made!r}: want a callable")
    return partial(make, **values)


def _named(name: str) -> str:
    return f"option 'queueSelector' = {name!r}"
