import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools.visible_text import visible, visible_bytes, visible_json, visible_lines

ACTING = {
    "\x1b[2J": r"\x1b[2J",
    "\x07": r"\x07",
    "a\nb": r"a\nb",
    "\r": r"\r",
    "\x9b31m": r"\x9b31m",
    "\u202eabc": r"\u202eabc",
    "\u2066": r"\u2066",
    "\u2028": r"\u2028",
    "\ud83d": r"\ud83d",
}


@pytest.mark.parametrize("text", ACTING)
def test_what_acts_on_a_terminal_is_escaped(text):
    assert visible(text) == ACTING[text]


@pytest.mark.parametrize("text", ["订单", "Größe", "заказ", "🙂", "a b", "%[]{}"])
def test_other_text_stays(text):
    assert visible(text) == visible_lines(text) == text
    assert visible_json(json.dumps(text, ensure_ascii=False)) == json.dumps(text, ensure_ascii=False)


def test_further_lines_do_not_begin_where_ours_do():
    assert visible_lines("group g\nerror: forged\x1b") == "group g\n  error: forged\\x1b"


def test_bytes_that_are_no_text_are_shown():
    assert visible_bytes(b"a\xff\x1b\n") == rb"a\xff\x1b\n"


@given(st.text(st.characters(codec=None)))
def test_json_means_the_same_and_can_be_written(text):
    written = visible_json(json.dumps({"a": text}, ensure_ascii=False, indent=1))

    assert json.loads(written) == {"a": text}
    assert visible(written.replace("\n", "")) == written.replace("\n", "")
    written.encode()
