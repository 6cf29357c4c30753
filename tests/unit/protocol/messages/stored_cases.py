"""Stored messages to test with."""

from hypothesis import strategies as st

from rmqtools.protocol.messages.stored import MESSAGE_MAGIC_CODE, MESSAGE_MAGIC_CODE_V2
from rmqtools.testing import stored_message

INT_32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT_64 = st.integers(-(1 << 63), (1 << 63) - 1)
TEXTS = st.text(
    st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), min_size=1, max_size=10
)
VERSIONS = st.sampled_from([MESSAGE_MAGIC_CODE, MESSAGE_MAGIC_CODE_V2])
COMPRESSIONS = st.sampled_from([0, 1, 0x101, 0x201, 0x301])


@st.composite
def stored_messages(draw):
    """Any message that can be stored: both address families, all compressions."""
    born_v6, store_v6 = draw(st.booleans()), draw(st.booleans())
    body = draw(st.binary(max_size=60))
    return stored_message(
        draw(TEXTS),
        draw(INT_64),
        queue_id=draw(INT_32),
        commit_log_offset=draw(INT_64),
        body=body,
        properties=draw(st.dictionaries(TEXTS, TEXTS, max_size=4)),
        flag=draw(INT_32),
        sys_flag=(draw(COMPRESSIONS) if body else 0) | born_v6 << 4 | store_v6 << 5,
        born_timestamp_ms=draw(INT_64),
        born_host="[2001:db8::1]:5" if born_v6 else "10.0.0.1:5",
        store_timestamp_ms=draw(INT_64),
        store_host="[::1]:10911" if store_v6 else "10.0.0.2:10911",
        reconsume_times=draw(INT_32),
        prepared_transaction_offset=draw(INT_64),
    )
