from hypothesis import given
from hypothesis import strategies as st

from rmqtools.protocol.messages.properties import format_properties, parse_properties

TEXTS = st.text(
    st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), min_size=1, max_size=10
)


def java_parse(text):
    """MessageDecoder.string2messageProperties, index by index, as the oracle."""
    found, index = {}, 0
    while index < len(text):
        end = text.find("\x02", index)
        end = len(text) if end < 0 else end
        separator = text.find("\x01", index)
        if index < separator < end - 1:
            found[text[index:separator]] = text[separator + 1 : end]
        index = end + 1
    return found


@given(st.dictionaries(TEXTS, TEXTS))
def test_parsing_gives_what_was_formatted(properties):
    assert parse_properties(format_properties(properties)) == properties


@given(st.text(st.sampled_from("ab\x01\x02"), max_size=20))
def test_any_text_is_read_as_java_reads_it(text):
    assert parse_properties(text) == java_parse(text)
