"""The common part of all client classes, asynchronous and blocking: construction, ``repr``, no pickling."""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from types import FunctionType
from typing import Any, get_args


class ClientObject:
    """Shows settings and state but no secrets, and explains a wrong constructor call.

    It refuses to be pickled, and names the config as what to pickle instead.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if isinstance(make := vars(cls).get("__init__"), FunctionType):
            cls.__init__ = _explained(make)  # type: ignore[method-assign]  # with the same signature

    def _shown(self) -> Mapping[str, str]:
        """Return what ``repr`` shows, by name."""
        return {}

    def __repr__(self) -> str:
        try:
            shown = "".join(f" {name}={value!r}" for name, value in self._shown().items())
        except AttributeError:  # its constructor has failed
            shown = ""
        return f"<{type(self).__module__}.{type(self).__qualname__}{shown}>"

    def __reduce__(self) -> str:
        raise TypeError(
            f"a {type(self).__name__} has connections and cannot be pickled: pickle its config, and make a "
            f"{type(self).__name__} where it is used"
        )


def _explained(make: FunctionType) -> Callable[..., None]:
    """Return a constructor whose error names the class that was called, and how it is called."""

    @wraps(make)
    def __init__(self: ClientObject, *args: Any, **kwargs: Any) -> None:
        try:
            make(self, *args, **kwargs)
        except TypeError:
            signature = inspect.signature(make)
            try:
                signature.bind(self, *args, **kwargs)
            except TypeError as error:
                name = type(self).__name__
                raise TypeError(f"{name}: {error}; want {name}({_required(signature)})") from None
            raise

    return __init__


def _required(signature: inspect.Signature) -> str:
    """Return the arguments without a default, as in ``ProducerConfig(...), listener, writer=...``."""
    _, *parameters = signature.parameters.values()
    shown = []
    for each in parameters:
        if each.default is each.empty and each.kind is not each.VAR_KEYWORD:
            kind = next(iter(get_args(each.annotation)), each.annotation)
            is_config = getattr(kind, "__name__", "").endswith("Config")
            text = f"{kind.__name__}(...)" if is_config else each.name
            shown.append(f"{text}=..." if each.kind is each.KEYWORD_ONLY else text)
    return ", ".join(shown)
