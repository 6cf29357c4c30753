"""Calls on threads beside a test."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def in_thread(function: Callable[[], T], *, name: str | None = None) -> "Future[T]":
    """Call a function on a thread of its own; return a future of its result or error."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as error:  # noqa: BLE001 - raised where the test asks
            future.set_exception(error)

    threading.Thread(target=run, daemon=True, name=name).start()
    return future
