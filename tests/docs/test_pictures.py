"""The pictures of the documentation are what their script draws."""

import re

import pytest

from tests.docs.pictures import ASSETS, SHARES, TOP, main

BY_HAND = "overview.svg"

pytestmark = pytest.mark.process  # seconds of work


def words(path):
    """What a reader sees: without bars, whose height depends on the moment."""
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text())
    return re.sub(r"[▁▂▃▄▅▆▇█]|&#160;", " ", " ".join(texts)).split()


def test_the_script_draws_every_picture_that_pages_show(tmp_path):
    main(tmp_path)
    shown = {
        name
        for page in ASSETS.parent.rglob("*.md")
        for name in re.findall(r"\]\(assets/([^)]*)\)", page.read_text())
    }

    assert {path.name for path in tmp_path.iterdir()} == {SHARES, TOP}
    assert shown == {SHARES, TOP, BY_HAND}
    assert words(ASSETS / TOP) == words(tmp_path / TOP)
    assert (ASSETS / SHARES).read_text().count("<use ") == (tmp_path / SHARES).read_text().count("<use ")


def test_pictures_load_nothing_from_elsewhere():
    for path in ASSETS.glob("*.svg"):
        assert not re.search(r"url\(\s*['\"]?https?:|href=\"https?:", path.read_text())
