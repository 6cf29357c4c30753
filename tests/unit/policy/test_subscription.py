import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools.errors import ConfigError
from rmqtools.model.group import SubscriptionData
from rmqtools.policy.subscription import build_subscription, matches_tags

TAGS = st.lists(st.text("ab|ü x", min_size=1, max_size=5), max_size=4)


def test_tags_keep_their_order_and_come_once():
    made = build_subscription("T", "b || a||b || ")

    assert (made.sub_string, made.tags_set) == ("b || a||b || ", ("b", "a"))
    assert made.code_set == (98, 97)


def test_tags_with_one_hash_code_have_one_code():
    made = build_subscription("T", "Aa || BB")

    assert (made.tags_set, made.code_set) == (("Aa", "BB"), (2112,))


def test_blanks_are_those_of_java():
    assert build_subscription("T", "\x01a\x1f||\u00a0b").tags_set == ("a", "\u00a0b")


@pytest.mark.parametrize("expression", ["||", "||||", " ", " || "])
def test_separators_and_blanks_without_a_tag_are_refused(expression):
    with pytest.raises(ConfigError, match="has no tag"):
        build_subscription("T", expression)


@pytest.mark.parametrize("expression_type", ["TAG", "SQL92"])
def test_a_text_that_cannot_be_sent_is_refused(expression_type):
    with pytest.raises(ConfigError, match=r"'\\udc80' cannot be sent"):
        build_subscription("T", "\udc80", expression_type=expression_type)


def test_a_condition_is_kept_as_it_is():
    assert build_subscription("T", "a > 1", expression_type="SQL92", version_ms=5) == SubscriptionData(
        topic="T", sub_string="a > 1", expression_type="SQL92", sub_version=5
    )


@pytest.mark.parametrize(
    ("expression", "tags", "wanted"),
    [
        ("*", None, True),
        ("*", "x", True),
        ("a || b", "b", True),
        ("a || b", "c", False),
        ("a || b", None, False),
        ("Aa", "BB", False),  # the hash code that a broker compares is the same
    ],
)
def test_the_second_filter_compares_texts(expression, tags, wanted):
    assert matches_tags(build_subscription("T", expression), tags) is wanted


def test_a_condition_is_left_to_the_broker():
    assert matches_tags(build_subscription("T", "a > 1", expression_type="SQL92"), "x")


def test_class_filters_are_left_to_the_broker():
    assert matches_tags(SubscriptionData(topic="T", tags_set=("a",), class_filter_mode=True), "x")


@given(TAGS)
def test_every_tag_of_an_expression_matches_it(tags):
    made = build_subscription("T", "||".join(["x", *tags]))

    assert all(matches_tags(made, tag) for tag in made.tags_set)
    assert all(tag.strip() == tag and "||" not in tag for tag in made.tags_set)
