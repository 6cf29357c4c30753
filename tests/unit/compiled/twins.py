"""What the tests of compiled twins share: input, and the originals to compare with."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any
from unittest.mock import patch

from hypothesis import strategies as st

from rmqtools.engine.producer import send_answer  # noqa: F401  # it binds the class that send_results makes
from rmqtools.model.message import MessageExt
from rmqtools.protocol.messages.stored import encode_message
from rmqtools.protocol.wire import command  # noqa: F401  # it binds the class that read_header makes

HEADER = (
    b'{"code":0,"extFields":{"msgId":"7F00","queueId":"3","queueOffset":"12"},"flag":1,"language":"JAVA",'
    b'"opaque":5,"remark":"fine","serializeTypeCurrentRPC":"JSON","version":515}'
)
STORED = MessageExt(
    "topic",
    3,
    77,
    1000,
    b"body",
    {"TAGS": "a", "KEYS": "k"},
    5,
    0,
    1_700_000_000_000,
    "127.0.0.1:1234",
    1_700_000_000_001,
    "127.0.0.1:10911",
)
STORED_BYTES = encode_message(STORED)
TEXTS = st.text(st.sampled_from('ab |\x01\x02\u00e9\u4e2d\ud800"\\\n\x00\x7f'), max_size=5)
VALUES = TEXTS | st.none() | st.just(7)


@contextmanager
def originals(*modules: ModuleType) -> Iterator[None]:
    """Without the twins of these modules."""
    with patch.multiple(modules[0], twins=None):
        if modules[1:]:
            with originals(*modules[1:]):
                yield
        else:
            yield


def told(call: Any, *arguments: Any, **named: Any) -> tuple[str, Any]:
    """What a call returns, or the type and the text of its error."""
    try:
        return "returned", call(*arguments, **named)
    except Exception as error:  # noqa: BLE001 - whatever the original raises
        return type(error).__name__, str(error)
