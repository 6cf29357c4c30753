import pytest

from rmqtools.engine.blocking_form import blocking
from tools.blocking_classes import CLASSES, BlockingClass, _Names, docstring, method, text_of


class Sample:
    @property
    def config(self) -> int:
        """The settings."""
        return 1

    async def fetch(self, topic: str, *, timeout: float = 1.0, **settings: int) -> list[str]:
        """Return names."""
        return [topic]

    @blocking("call", note="It may block.")
    def pause(self, queues: list[int]) -> None:
        """Stop.

        Raises:
            ValueError: why.
        """

    @blocking("sends")
    async def send(self, message: str) -> None:
        """Send."""

    @blocking("base")
    async def close(self) -> None:
        """Close. See ``async with`` and :class:`rmqtools.aio.Client`."""

    @blocking("by_hand")
    async def poll(self) -> None:
        """Poll."""

    def unmarked(self) -> None:
        """Do something."""


def written(name: str) -> str:
    member = vars(Sample)[name]
    is_property = isinstance(member, property)
    function = member.fget if is_property else member
    return method(function, "_inner", is_property=is_property, names=_Names())


@pytest.mark.process  # ruff runs for each
@pytest.mark.parametrize("wanted", CLASSES, ids=lambda wanted: wanted.name)
def test_the_blocking_classes_are_those_that_the_program_writes(wanted: BlockingClass):
    assert wanted.path.read_text() == text_of(wanted), "run .venv/bin/python -m tools.blocking_classes"


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("config", "return self._inner.config"),
        ("fetch", "return self._bridge.run(lambda: self._inner.fetch(topic, timeout=timeout, **settings))"),
        ("pause", "self._bridge.call(lambda: self._inner.pause(queues))"),
        ("send", "self._sends.send(message)"),
        ("close", "super().close()"),
    ],
)
def test_each_form_has_its_line(name: str, line: str):
    assert written(name).rstrip().endswith(f"\n        {line}")


def test_a_property_stays_one_and_a_signature_stays_the_same():
    assert written("config").startswith("    @property\n    def config(self) -> int:\n")
    assert "    def fetch(self, topic: str, *, timeout: float=1.0, **settings: int) -> list[str]:" in written(
        "fetch"
    )


def test_a_method_written_by_hand_is_left_out():
    assert written("poll") == ""


def test_a_plain_method_without_a_mark_is_refused():
    with pytest.raises(ValueError, match=r"Sample\.unmarked: mark it with @blocking"):
        written("unmarked")


def test_the_note_stands_before_the_sections():
    assert docstring("Stop.\n\nRaises:\n    ValueError: why.", "It may block.", "    ") == (
        '    """Stop.\n\n    It may block.\n\n    Raises:\n        ValueError: why.\n    """'
    )


def test_a_docstring_names_what_blocking_code_uses():
    assert docstring("See ``async with`` and :class:`rmqtools.aio.Client`.", "", "") == (
        '"""See ``with`` and :class:`rmqtools.Client`."""'
    )
