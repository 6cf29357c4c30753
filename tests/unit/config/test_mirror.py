"""Settings of mirrors: what cannot be meant is refused, by name."""

from typing import Any

import pytest

from rmqtools import ClientConfig, MirrorConfig, ProducerConfig
from rmqtools.errors import ConfigError


@pytest.mark.parametrize(
    "setting",
    [
        {"topics": {}},
        {"name": "a b"},
        {"source_name": ""},
        {"target_name": "a/b"},
        {"share": 0.0},
        {"share": 1.5},
        {"max_messages_per_second": 0},
        {"settle_seconds": -1.0},
        {"request_bytes": 0},
        {"begin": "first"},
        {"tags": ("a",), "sql": "a > 1"},
    ],
    ids=str,
)
def test_a_setting_that_cannot_be_meant_is_refused_by_its_name(setting):
    given: dict[str, Any] = {
        "source": ClientConfig(name_server="127.0.0.1:1"),
        "target": ProducerConfig(name_server="127.0.0.1:1"),
        "topics": {"a": "a"},
    }
    MirrorConfig(**given)

    with pytest.raises(ConfigError, match=next(iter(setting))):
        MirrorConfig(**(given | setting))
