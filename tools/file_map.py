"""The file map: every module with the first line of its docstring, as a page of the documentation site.

python -m tools.file_map  # prints it
"""

import ast
import re
import sys
from pathlib import Path

from tools.sources import PACKAGES, ROOT, tree_of


def summary(path: Path) -> str:
    """Return the first line of a module's docstring, fit for a table cell."""
    text = ast.get_docstring(tree_of(path)) or ""
    line = re.sub(r":\w+:`", "`", text.partition("\n")[0]).replace(
        "``", "`"
    )  # Markdown, not reStructuredText
    return line.replace("|", "\\|")


def folder_map(folder: Path, root: Path) -> str:
    """Return the heading and the table of one folder."""
    about = summary(folder / "__init__.py")
    modules = sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")
    rows = "".join(f"| `{path.name}` | {summary(path)} |\n" for path in modules)
    table = f"\n| file | what it is |\n|---|---|\n{rows}" if rows else ""
    return f"\n### {folder.relative_to(root)}/\n\n{about}\n{table}"


def file_map(root: Path = ROOT) -> str:
    """Return the map of all folders of the packages, by path."""
    folders = sorted(path.parent for package in PACKAGES for path in (root / package).rglob("__init__.py"))
    return "".join(folder_map(folder, root) for folder in folders)


def file_map_page(root: Path = ROOT) -> str:
    """Return the map as a page."""
    return f"# File map\n\nMade from the first line of every module.\n{file_map(root)}"


if __name__ == "__main__":
    sys.stdout.write(file_map_page())
