"""The base of fakes: to mypy they fit everywhere, since each has only what the code under test uses."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Fake = Any
else:
    Fake = object  # a subclass of Any cannot be made with arguments
