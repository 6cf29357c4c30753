import copy
import json
import logging
import pickle

import pytest

from rmqtools.model.secret import Secret, reveal

TEXT = "hunter2"


@pytest.mark.parametrize(
    "shown",
    [str, repr, "{}".format, "%s".__mod__, json.dumps, bytes.decode, copy.deepcopy, lambda s: s + ""],
    ids=["str", "repr", "format", "percent", "json", "encode", "deepcopy", "join"],
)
def test_a_secret_shows_as_stars(shown):
    secret = Secret(TEXT)
    text = str(shown(secret.encode() if shown is bytes.decode else secret))

    assert TEXT not in text
    assert "***" in text


def test_a_log_record_has_stars(caplog):
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("any").debug("with %s and %r", Secret(TEXT), {"key": Secret(TEXT)})

    assert caplog.messages == ["with *** and {'key': '***'}"]


def test_the_text_itself_is_told_to_who_asks_for_it_also_after_a_pickle():
    assert Secret(TEXT).reveal() == reveal(TEXT) == TEXT
    assert pickle.loads(pickle.dumps(Secret(TEXT))).reveal() == TEXT
    assert Secret(Secret(TEXT)).reveal() == TEXT


def test_secrets_are_equal_by_the_text_itself():
    assert Secret(TEXT) == TEXT
    assert Secret(TEXT) == Secret(TEXT)
    assert Secret(TEXT) != Secret("another")
    assert Secret(TEXT) != "***"
    assert hash(Secret(TEXT)) == hash(TEXT)


def test_an_empty_secret_is_empty():
    assert not Secret("")
