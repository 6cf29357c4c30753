"""The classes of all headers, by name."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from rmqtools.protocol import headers
from rmqtools.protocol.headers import codec

HEADERS: Final[dict[str, type[codec.Header]]] = {
    name: found
    for module in (
        import_module(each.name) for each in iter_modules(headers.__path__, f"{headers.__name__}.")
    )
    for name, found in vars(module).items()
    if isinstance(found, type) and issubclass(found, codec.Header)
}
