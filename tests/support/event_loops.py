"""Tests on both event loops that clients run on: asyncio's, and uvloop where it is installed."""

import asyncio
from importlib import import_module
from importlib.util import find_spec

import pytest

needs_uvloop = pytest.mark.skipif(find_spec("uvloop") is None, reason="uvloop is not installed")


def _uvloop() -> asyncio.AbstractEventLoop:
    loop: asyncio.AbstractEventLoop = import_module("uvloop").new_event_loop()
    return loop


on_both_loops = pytest.mark.parametrize(
    "new_loop",
    [
        pytest.param(asyncio.new_event_loop, id="asyncio"),
        pytest.param(_uvloop, id="uvloop", marks=needs_uvloop),
    ],
)
