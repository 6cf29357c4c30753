"""Writes the file map of ``rmqtools/DESIGN.md`` from the first docstring line of every module.

python -m tools.file_map          # updates the map
python -m tools.file_map --check  # exit code 1 if the page has another one
"""

import ast
import re
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "rmqtools" / "DESIGN.md"
PACKAGES = ("rmqtools", "spark_connector")
BEGIN = "<!-- file map: written by python -m tools.file_map -->"
END = "<!-- end of the file map -->"


def summary(path: Path) -> str:
    """The first line of a module's docstring, fit for a table cell."""
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    line = re.sub(r":\w+:`", "`", text.partition("\n")[0]).replace(
        "``", "`"
    )  # Markdown, not reStructuredText
    return line.replace("|", "\\|")


def folder_map(folder: Path, root: Path) -> str:
    """The heading and the table of one folder."""
    about = summary(folder / "__init__.py")
    modules = sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")
    rows = "".join(f"| `{path.name}` | {summary(path)} |\n" for path in modules)
    table = f"\n| file | what it is |\n|---|---|\n{rows}" if rows else ""
    return f"\n### {folder.relative_to(root)}/\n\n{about}\n{table}"


def file_map(root: Path = ROOT) -> str:
    """The map of all folders of the packages, by path."""
    folders = sorted(path.parent for package in PACKAGES for path in (root / package).rglob("__init__.py"))
    return "".join(folder_map(folder, root) for folder in folders)


def with_file_map(page: str, text: str) -> str:
    """The page with a file map between its two marks."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{PAGE.name} lacks one of the lines {BEGIN!r} and {END!r}: put both in")
    return f"{head}{BEGIN}\n{text}\n{END}{tail}"


def main(arguments: Sequence[str]) -> int:
    """The command; 1 if ``--check`` finds another map."""
    page = PAGE.read_text()
    wanted = with_file_map(page, file_map())
    if "--check" in arguments:
        return int(page != wanted)
    PAGE.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
