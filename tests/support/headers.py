"""The classes of all headers, by name."""

from typing import Final

from rmqtools.protocol.headers import codec, group, offset, pull, send, topic

HEADERS: Final[dict[str, type[codec.Header]]] = {
    name: found
    for module in (codec, send, pull, offset, group, topic)
    for name, found in vars(module).items()
    if isinstance(found, type) and issubclass(found, codec.Header)
}
