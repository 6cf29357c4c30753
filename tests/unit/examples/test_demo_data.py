"""The demo's data set is as hard as promised, and the same everywhere."""

import unicodedata
from collections import Counter

import pytest

from examples.demo_data import DATA_SHA256, MEBIBYTE, ROWS, SCRIPTS, DemoRow, data_sha256, make_rows

pytestmark = pytest.mark.process  # seconds of work


@pytest.fixture(scope="module")
def rows() -> list[DemoRow]:
    return make_rows()


def scripts_in(texts: list[str]) -> set[str]:
    """Scripts by what their letters' Unicode names begin with."""
    letters = {letter for text in texts for letter in text if letter.isalpha()}
    return {unicodedata.name(letter).split()[0] for letter in letters}


def test_the_data_set_is_the_pinned_one(rows):
    assert data_sha256(rows) == DATA_SHA256
    assert len(rows) == ROWS >= 10_000


def test_one_altered_byte_changes_the_sum(rows):
    altered = rows[7]._replace(body=b"?" + rows[7].body[1:])

    assert data_sha256([*rows[:7], altered, *rows[8:]]) != DATA_SHA256


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(DemoRow(b"a", None, None, ()), DemoRow(b"a", "", None, ()), id="null-and-empty"),
        pytest.param(DemoRow(b"a", "b", None, ()), DemoRow(b"a", None, "b", ()), id="tags-and-keys"),
        pytest.param(DemoRow(b"ab", "c", None, ()), DemoRow(b"a", "bc", None, ()), id="another-cut"),
    ],
)
def test_different_rows_have_different_sums(one, other):
    assert data_sha256([one]) != data_sha256([other])


@pytest.mark.parametrize("part", ["tags", "keys", "names", "values", "bodies"])
def test_at_least_12_scripts_are_in_every_part(rows, part):
    texts = {
        "tags": [row.tags for row in rows if row.tags],
        "keys": [row.keys for row in rows if row.keys],
        "names": [name for row in rows for name, _ in row.properties],
        "values": [value for row in rows for _, value in row.properties],
        "bodies": [row.body.decode() for number, row in enumerate(rows) if number % 8 == 6],
    }

    assert len(scripts_in(texts[part])) >= 12


def test_the_words_named_after_a_script_are_of_that_script():
    named = {script: scripts_in(list(words)) for script, words in SCRIPTS.items() if script != "Emoji"}

    assert {script: found for script, found in named.items() if found != {script.upper()}} == {"Han": {"CJK"}}


def test_bodies_hold_every_byte_and_reach_from_1_byte_to_1_mebibyte(rows):
    sizes = Counter(len(row.body) for row in rows)

    assert (min(sizes), max(sizes), sizes[MEBIBYTE]) == (1, MEBIBYTE, 3)
    assert {row.body for row in rows if len(row.body) == 1} >= {bytes([value]) for value in range(256)}
    assert any(set(row.body) == set(range(256)) and len(row.body) == 256 for row in rows)
    assert any(set(row.body) == {0} and len(row.body) > 1000 for row in rows)
    assert sum(size * count for size, count in sizes.items()) < 60_000_000


def test_null_tags_null_keys_no_properties_and_equal_rows_are_there(rows):
    repeated = Counter(rows).most_common(1)[0]

    assert repeated == (DemoRow(b"the same body", None, None, ()), 300)
    assert sum(row.tags is None for row in rows) > 1000
    assert sum(row.keys is None for row in rows) > 1000
    assert sum(row.properties == () and row.tags is not None for row in rows) > 100


def test_the_sequence_is_the_number_of_the_row(rows):
    numbered = [(number, row.sequence) for number, row in enumerate(rows) if row.properties]

    assert all(number == sequence for number, sequence in numbered)
    assert len(numbered) == 11_400
