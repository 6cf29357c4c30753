"""Saves the figures of :mod:`rmqtools.plot` for commands with ``--plot``."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from rmqtools.cli.printing import warn
from rmqtools.errors import ConfigError, RocketMQError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_KINDS = (".svg", ".png", ".pdf")


def check_picture(path: Path | None) -> None:
    """Refuse a picture that could not be saved, before any work.

    Raises:
        ConfigError: another kind of file, a folder that is missing, or no matplotlib.
    """
    if path is None:
        return
    if path.suffix.lower() not in _KINDS:
        raise ConfigError(f"--plot {path}: want a name that ends in {', '.join(_KINDS)}")
    if not path.parent.is_dir():
        raise ConfigError(f"--plot {path}: there is no folder {path.parent}: make it first")
    if find_spec("matplotlib") is None:
        raise ConfigError("--plot needs matplotlib: install it with pip install 'rmqtools[plot]'")


def save_picture(path: Path, draw: Callable[[], "Figure"]) -> None:
    """Draw and save; says on standard error where it is."""
    try:
        draw().savefig(path, dpi=120)
    except OSError as error:
        raise RocketMQError(f"--plot {path}: cannot be written: {error}") from error
    warn(f"saved {path}")
