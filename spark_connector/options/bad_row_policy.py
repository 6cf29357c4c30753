"""The handling of rows that cannot be sent: the value of option ``onBadRow``; pure."""

import re
from dataclasses import dataclass
from typing import Final

from rmqtools.model.names import is_topic_name

_TOPIC: Final = re.compile(r"topic:\s*(.*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class BadRowPolicy:
    """Treatment of rows that cannot be sent.

    Attributes:
        is_fail: whether they fail the write.
        topic: the topic that gets them; None: they are skipped, or fail the write.
    """

    is_fail: bool = True
    topic: str | None = None


def parse_bad_row_policy(text: str) -> BadRowPolicy:
    """Parse ``fail``, ``skip`` or ``topic:NAME``.

    Raises:
        ValueError: none of them, or no valid name.
    """
    match text.strip().lower():
        case "fail":
            return BadRowPolicy()
        case "skip":
            return BadRowPolicy(is_fail=False)
    if (found := _TOPIC.fullmatch(text.strip())) is None or not is_topic_name(found[1]):
        raise ValueError("it is none of them, or the topic's name has a character outside %|a-zA-Z0-9_-")
    return BadRowPolicy(is_fail=False, topic=found[1])
