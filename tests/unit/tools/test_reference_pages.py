"""Every public name is in the reference."""

import re
from importlib import import_module
from typing import Any

import pytest

from rmqtools import aio
from tests.docs.blocks import DOCS
from tools.reference_pages import client_classes, home_of, reference_pages

_ENTRY = re.compile(r"^::: (\S+)$", re.MULTILINE)


def public_packages() -> list[str]:
    """The packages whose ``__all__`` the page on support calls public."""
    row = next(line for line in (DOCS / "support.md").read_text().splitlines() if "What is public" in line)
    return re.findall(r"`(rmqtools[\w.]*|spark_connector)`", row.partition("; classes of")[0])


def entries() -> set[str]:
    pages = [*reference_pages().values(), (DOCS / "reference" / "errors.md").read_text()]
    return {place for page in pages for place in _ENTRY.findall(page)}


@pytest.mark.parametrize("package", public_packages())
def test_every_name_of_a_public_package_is_in_the_reference(package):
    module: Any = import_module(package)
    places = {name: {f"{package}.{name}", home_of(module, name)} for name in module.__all__}
    places |= {"RocketMQError": {"rmqtools.errors"}} if package == "rmqtools" else {}

    assert [name for name, homes in places.items() if not homes & entries()] == []


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
