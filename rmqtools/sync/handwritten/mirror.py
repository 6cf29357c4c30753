"""The base class of blocking mirrors."""

from rmqtools import aio
from rmqtools.config.mirror import MirrorConfig
from rmqtools.sync.lifecycle import Blocking


class BlockingMirror(Blocking):
    """A blocking mirror without the methods of one line."""

    def __init__(self, config: MirrorConfig) -> None:
        self._mirror = aio.Mirror(config)
        super().__init__(self._mirror)
