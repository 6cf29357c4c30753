"""The pictures of the documentation are what their script draws."""

import re

import pytest

from tests.docs.pictures import ASSETS, SHARES, TOP, TOP_WIDE, main

BY_HAND = "overview.svg"
# By tools.measure.bench.plots, from the JSON of runs.
MEASURED = {"speed-java.svg", "speed-python.svg", "speed-spark.svg"}

pytestmark = pytest.mark.process  # seconds of work


def words(path):
    """What a reader sees: without bars, times and ages, which depend on the moment."""
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text())
    shown = re.sub(r"[▁▂▃▄▅▆▇█]|&#160;", " ", " ".join(texts))
    return re.sub(r"127\.0\.0\.1:\d+|\d+(\.\d+)? ?s\b|\b\d+[mhd]\b|every \d+", "#", shown).split()


def test_the_script_draws_every_picture_that_pages_show(tmp_path):
    main(tmp_path)
    shown = {
        name
        for page in ASSETS.parent.rglob("*.md")
        for name in re.findall(r"\]\(assets/([^)]*)\)", page.read_text())
    }

    assert {path.name for path in tmp_path.iterdir()} == {SHARES, TOP, TOP_WIDE}
    assert shown == {SHARES, TOP, TOP_WIDE, BY_HAND, *MEASURED}
    for name in (TOP, TOP_WIDE):
        assert words(ASSETS / name) == words(tmp_path / name)
    assert (ASSETS / SHARES).read_text().count("<use ") == (tmp_path / SHARES).read_text().count("<use ")


def test_pictures_load_nothing_from_elsewhere():
    for path in ASSETS.glob("*.svg"):
        assert not re.search(r"url\(\s*['\"]?https?:|href=\"https?:", path.read_text())
