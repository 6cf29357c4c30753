"""The pages of the reference. tests/unit/tools/test_surface.py checks that every public name is on one."""

import re

from rmqtools import aio
from tests.docs.blocks import DOCS
from tools.reference_pages import client_classes, reference_pages
from tools.surface import public_packages

_ENTRY = re.compile(r"^::: (\S+)$", re.MULTILINE)


def test_the_page_on_support_names_the_packages():
    assert {"rmqtools", "rmqtools.aio", "rmqtools.group", "rmqtools.plot", "spark_connector"} <= {
        *public_packages()
    }


def test_a_class_has_a_page_with_both_faces_in_the_navigation():
    navigation = (DOCS.parent / "mkdocs.yml").read_text()
    pages = {path: page for path, page in reference_pages().items() if path.startswith("reference/clients/")}

    assert len(pages) == len(client_classes()) == len(aio.__all__) - 3  # without listeners and create_reply
    assert all(f": {path}\n" in navigation for path in reference_pages())
    for name in client_classes():
        (page,) = (page for page in pages.values() if page.startswith(f"# {name}\n"))
        assert _ENTRY.findall(page)[0] == f"rmqtools.{name}"
        assert f"rmqtools.aio.{name}" in _ENTRY.findall(page)
