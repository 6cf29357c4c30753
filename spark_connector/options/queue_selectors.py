"""The queue selector given by option ``queueSelector``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from rmqtools.errors import ConfigError
from rmqtools.plug_in import Role, match_options
from rmqtools.select import (
    MessageQueueSelector,
    SelectMessageQueueByHash,
    SelectMessageQueueByMachineRoom,
    SelectMessageQueueByRandom,
)
from rmqtools.unknown_name import unknown_name
from spark_connector.options.plug_ins import load_listed

MakeSelector = Callable[[], MessageQueueSelector]
ROUND_ROBIN: Final = "round-robin"
_PREFIX: Final = "queueSelector."
_SELECTORS: Final[Mapping[str, Callable[..., MessageQueueSelector]]] = {
    "hash": SelectMessageQueueByHash,
    "random": SelectMessageQueueByRandom,
    "machine-room": SelectMessageQueueByMachineRoom,
}
_SETTINGS: Final[Mapping[str, tuple[str, ...]]] = {"hash": (), "random": (), "machine-room": ("room",)}
_SELECTOR: Final = Role("queue selector", {"__call__": 3})


def selector_maker(text: str, settings: Mapping[str, str]) -> MakeSelector | None:
    """Return a function that makes the selector, called once per task; None: round robin.

    Args:
        text: ``round-robin``, ``hash``, ``random``, ``machine-room``, or ``module:Class``: a class
            whose instances are called as ``(queues, message, arg)``.
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
        own = _OwnSelector(name, dict(settings))
        own()  # so that errors appear at save()
        return own
    if name.lower() not in _SELECTORS:
        known = [ROUND_ROBIN, *_SELECTORS, "module:Class"]
        raise ConfigError(f"option 'queueSelector': {unknown_name('selector', name, known)}")
    make, names = _SELECTORS[name.lower()], _SETTINGS[name.lower()]
    return partial(make, **match_options(make, settings, what=_named(name), names=names, prefix=_PREFIX))


@dataclass(frozen=True, slots=True)
class _OwnSelector:
    """Maker of a user's selector. It is pickled by name, so each process checks its own environment."""

    name: str
    settings: Mapping[str, str]

    def __call__(self) -> MessageQueueSelector:
        what = _named(self.name)
        make = load_listed(self.name, what=what, role=_SELECTOR)
        made: MessageQueueSelector = make(**match_options(make, self.settings, what=what, prefix=_PREFIX))
        return made


def _named(name: str) -> str:
    return f"option 'queueSelector' = {name!r}"
