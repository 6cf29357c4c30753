"""Public settings say what they are; their defaults are pinned by ``tests/unit/tools/test_surface.py``."""

import ast
from pathlib import Path

import rmqtools.config


def docstrings_of_fields() -> dict[str, str | None]:
    """``Class.field`` -> the string that stands under it, over all modules of the package."""
    folder = Path(rmqtools.config.__file__).parent
    found: dict[str, str | None] = {}
    for path in sorted(folder.glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                found |= {f"{node.name}.{name}": text for name, text in fields_of(node)}
    return found


def fields_of(node: ast.ClassDef) -> list[tuple[str, str | None]]:
    return [
        (statement.target.id, text_of(under))
        for statement, under in zip(node.body, [*node.body[1:], None], strict=True)
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    ]


def text_of(statement: ast.stmt | None) -> str | None:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return str(statement.value.value)
    return None


def test_the_first_line_of_a_settings_docstring_is_a_sentence():
    first_lines = {name: (text or "").partition("\n")[0] for name, text in docstrings_of_fields().items()}

    assert {name: line for name, line in first_lines.items() if not line.endswith(".")} == {}
