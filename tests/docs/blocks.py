"""The code blocks of the documentation's pages."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
NO_COMMANDS = {"how-it-works.md", "performance.md"}  # drawings; the lines that start an hour of measuring
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block; a block without language holds commands."""

    page: str
    line: int
    language: str
    text: str

    @property
    def commands(self) -> list[str]:
        """Its lines, if it is a block of commands."""
        return [] if self.language else [line for line in self.text.splitlines() if line]


def pages() -> list[str]:
    """Every page that is a file of ``docs``; decisions hold no code that runs."""
    return sorted(path.relative_to(DOCS).as_posix() for path in DOCS.glob("*.md"))


def blocks_of(page: str) -> list[Block]:
    """The blocks of a page that run: Python and commands. Drawings are no commands."""
    text = (DOCS / page).read_text()
    found = [
        Block(page, text[: match.start(2)].count("\n") + 1, match[1], match[2])
        for match in _BLOCK.finditer(text)
    ]
    return [
        each
        for each in found
        if each.language == "python" or (each.language == "" and page not in NO_COMMANDS)
    ]
