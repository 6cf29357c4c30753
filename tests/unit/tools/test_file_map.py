import pytest

from tools.file_map import file_map, file_map_page, summary
from tools.sources import PACKAGES, ROOT

pytestmark = pytest.mark.process  # seconds of work


def test_every_module_has_a_line_and_a_summary_of_its_own():
    modules = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    text = file_map()

    silent = [str(path) for path in modules if not summary(path)]
    assert not silent, f"begin each with a docstring, whose first line the file map shows: {silent}"
    assert text.count("\n| `") == len([path for path in modules if path.name != "__init__.py"])


def test_a_folder_lists_its_modules_by_name(tmp_path):
    for name, text in {"__init__": "Doors.", "b": "Opens a|b.", "a": "Closes.\n\nMore."}.items():
        path = tmp_path / "rmqtools" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'"""{text}"""\n')

    assert file_map(tmp_path) == (
        "\n### rmqtools/\n\nDoors.\n\n| file | what it is |\n|---|---|\n"
        "| `a.py` | Closes. |\n| `b.py` | Opens a\\|b. |\n"
    )


def test_the_page_has_a_heading_and_every_folder():
    page = file_map_page()

    assert page.startswith("# File map\n")
    assert "\n### rmqtools/policy/allocate/\n" in page
