"""Parts of docs/compatibility.md that runs of tests write."""

from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "compatibility.md"


@dataclass(frozen=True, slots=True)
class Part:
    """Lines of the page between two comments, each a line of its own."""

    begin: str
    end: str

    def shown(self) -> str:
        """Return the text of the page."""
        return PAGE.read_text().split(self.begin)[1].split(self.end)[0].strip()

    def write(self, text: str) -> None:
        """Replace the text of the page."""
        before, rest = PAGE.read_text().split(self.begin)
        PAGE.write_text(f"{before}{self.begin}\n\n{text}\n\n{self.end}{rest.split(self.end)[1]}")


def row(*cells: str) -> str:
    """Return one row of a Markdown table."""
    return f"| {' | '.join(cells)} |"
