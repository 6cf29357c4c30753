"""The pages of the reference. tests/unit/tools/test_surface.py checks that every public name is on one."""

import re
from pkgutil import resolve_name

from rmqtools import aio
from tests.docs.blocks import DOCS
from tools.reference_pages import client_classes, reference_pages
from tools.surface import public_packages

_ENTRY = re.compile(r"^::: (\S+)$", re.MULTILINE)


def test_the_page_on_support_names_the_packages():
    assert {"rmqtools", "rmqtools.aio", "rmqtools.group", "rmqtools.plot", "spark_connector"} <= {
        *public_packages()
    }


def exists(name: str) -> bool:
    try:
        resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


def test_every_entry_of_a_page_exists():
    entries = [name for page in reference_pages().values() for name in _ENTRY.findall(page)]

    assert len(entries) > 50
    assert [name for name in entries if not exists(name)] == [], (
        "correct _SUBJECTS of tools/reference_pages.py"
    )
    assert not exists("rmqtools.log.nowhere")


def test_a_class_has_a_page_with_both_faces_in_the_navigation():
    navigation = (DOCS.parent / "mkdocs.yml").read_text()
    pages = {path: page for path, page in reference_pages().items() if path.startswith("reference/clients/")}

    assert len(pages) == len(client_classes()) == len(aio.__all__) - 3  # without listeners and create_reply
    assert all(f": {path}\n" in navigation for path in reference_pages())
    for name in client_classes():
        (page,) = (page for page in pages.values() if page.startswith(f"# {name}\n"))
        assert _ENTRY.findall(page)[0] == f"rmqtools.{name}"
        assert f"rmqtools.aio.{name}" in _ENTRY.findall(page)
