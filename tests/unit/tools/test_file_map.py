import pytest

from tools.file_map import BEGIN, END, PACKAGES, PAGE, ROOT, file_map, main, summary, with_file_map

pytestmark = pytest.mark.process  # seconds of work


def test_the_file_map_is_made_from_the_modules():
    assert main(["--check"]) == 0, f"{PAGE.relative_to(ROOT)} is behind: run python -m tools.file_map"


def test_every_module_has_a_line_and_a_summary_of_its_own():
    modules = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    text = file_map()

    assert [str(path) for path in modules if not summary(path)] == []
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


def test_only_the_part_between_the_marks_changes():
    page = f"# Design\n{BEGIN}\nold\n{END}\n\n## Next\n"

    assert with_file_map(page, "new") == f"# Design\n{BEGIN}\nnew\n{END}\n\n## Next\n"


def test_a_page_without_marks_is_refused():
    with pytest.raises(ValueError, match="lacks one of the lines"):
        with_file_map("# Design\n", "new")
