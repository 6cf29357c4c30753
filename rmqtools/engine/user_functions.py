"""Checks functions and listeners that users give: what they can be called with, and whether that is awaited.

A coroutine function that nothing awaits, or an awaited function that returns no awaitable, would fail at each
message, and all messages would become dead letters.
"""

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, get_origin

_LISTENER = "want a function listener(messages, context); tags= and sql= are given by name"
_TRANSACTION = {"execute_local_transaction": 2, "check_local_transaction": 1}


def check_listener(topic: str, listener: Any, *, awaited: bool) -> None:
    """Check that a listener can be called with messages and context.

    Args:
        topic: the topic that it is for.
        listener: what the user gave.
        awaited: whether its answers are awaited. Then functions must be coroutine functions, wrap one
            (``functools.wraps``), or be annotated to return an awaitable. Other callable objects are not
            refused.

    Raises:
        TypeError: it is not callable with two arguments, or is of the other kind.
    """
    what = f"listener of topic {topic!r}"
    _check_call(what, listener, 2, _LISTENER)
    if inspect.isgeneratorfunction(listener) or inspect.isasyncgenfunction(listener):
        raise TypeError(f"{what} is {listener!r}, which contains yield: {_LISTENER}, without yield")
    if is_coroutine_function(listener) and not awaited:
        raise TypeError(
            f"{what} is {listener!r}, a coroutine function, which this consumer does not await: write def "
            "instead of async def, or use rmqtools.aio.PushConsumer"
        )
    if awaited and _is_plain(listener):
        raise TypeError(
            f"{what} is {listener!r}, a plain function, whose answer cannot be awaited: write async def "
            "instead of def or lambda, or use rmqtools.PushConsumer"
        )


def check_queue_listener(listener: Any) -> None:
    """Check a ``message_queue_listener``; None: there is none.

    Raises:
        TypeError: it cannot be called with three arguments, or is a coroutine function.
    """
    _check_callback("message_queue_listener", listener, 3, "want listener(topic, all_queues, own_queues)")


def check_error_listener(listener: Any) -> None:
    """Check an ``error_listener``; None: there is none.

    Raises:
        TypeError: it cannot be called with an error, or is a coroutine function.
    """
    _check_callback("error_listener", listener, 1, "want listener(error)")


def check_transaction_listener(listener: object, *, awaited: bool) -> None:
    """Check a transaction listener; ``awaited``: whether its methods may be coroutine functions.

    Raises:
        TypeError: it lacks a method, is a class, or has a coroutine function that is not awaited.
    """
    for name, count in _TRANSACTION.items():
        method = None if isinstance(listener, type) else getattr(listener, name, None)
        wanted = (
            "want an object with execute_local_transaction(message, arg) and check_local_transaction(message)"
        )
        if method is None:
            raise TypeError(f"transaction listener {listener!r} has no method {name}: {wanted}")
        _check_call(f"{name} of the transaction listener", method, count, wanted)
        if is_coroutine_function(method) and not awaited:
            raise TypeError(
                f"{name} of the transaction listener is a coroutine function, which this producer does not "
                "await: write def, or use rmqtools.aio.TransactionProducer"
            )


def is_coroutine_function(function: Callable[..., object]) -> bool:
    """Return whether calls return coroutines: of functions, methods, partial ones, and callable objects."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _is_plain(listener: Any) -> bool:
    """Return whether a listener is a function without any sign that it returns an awaitable."""
    function = listener.func if isinstance(listener, partial) else listener
    is_python = inspect.isfunction(function) or inspect.ismethod(function)
    if not is_python or inspect.iscoroutinefunction(inspect.unwrap(function)):
        return False
    returned = function.__annotations__.get("return")
    kind = get_origin(returned) or returned
    return not (isinstance(kind, type) and issubclass(kind, Awaitable))


def _check_callback(name: str, callback: Any, count: int, wanted: str) -> None:
    if callback is None:
        return
    _check_call(name, callback, count, wanted)
    if is_coroutine_function(callback):
        raise TypeError(f"{name} is {callback!r}, a coroutine function, which is not awaited: write def")


def _check_call(what: str, function: object, count: int, wanted: str) -> None:
    """Raise a TypeError unless the function can be called with so many arguments."""
    try:
        if callable(function):
            inspect.signature(function).bind(*(None,) * count)
            return
    except ValueError:  # some builtins have no signature
        return
    except TypeError as error:
        raise TypeError(f"{what} is {function!r}: {wanted} ({error})") from error
    raise TypeError(f"{what} is {function!r}: {wanted}")
