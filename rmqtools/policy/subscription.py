"""Makes subscriptions from text, and filters messages by tags.

Brokers filter tags by hash code, so messages with other tags may arrive. Clients compare the text again.
Source of the rules: FilterAPI.build, PullAPIWrapper.processPullResult (Java client).
"""

from rmqtools.errors import ConfigError
from rmqtools.model.group import SUB_ALL, SubscriptionData
from rmqtools.policy.selectors import java_hash_code

TAG = "TAG"
SQL92 = "SQL92"
_SEPARATOR = "||"
_JAVA_BLANKS = "".join(map(chr, range(0x21)))  # the characters that Java's trim() removes


def build_subscription(
    topic: str, expression: str | None = SUB_ALL, *, expression_type: str | None = TAG, version_ms: int = 0
) -> SubscriptionData:
    """Make the subscription of a topic.

    Args:
        topic: its name on the broker.
        expression: for tags ``a || b``; None, "" and ``*`` select everything. For SQL92 a condition.
        expression_type: ``TAG`` (also None) or ``SQL92``; the broker validates other types.
        version_ms: time of its creation, in ms since 1970: brokers keep the newest of a group.

    Raises:
        ConfigError: no tag but blanks or separators, an empty condition, or a text that is not valid Unicode.
    """
    try:
        (expression or "").encode()
    except UnicodeEncodeError as error:
        raise ConfigError(f"subscription of {topic!r}: {expression!r} cannot be sent: {error}") from error
    if expression_type is not None and expression_type != TAG:
        return _condition(topic, expression, expression_type, version_ms)
    if not expression or expression == SUB_ALL:
        return SubscriptionData(topic=topic, sub_version=version_ms)
    tags = _tags_of(topic, expression)
    return SubscriptionData(
        topic=topic,
        sub_string=expression,
        tags_set=tags,
        code_set=tuple(dict.fromkeys(map(java_hash_code, tags))),
        sub_version=version_ms,
    )


def matches_tags(subscription: SubscriptionData, tags: str | None) -> bool:
    """Return whether a message's tags match by text. The broker has compared only hash codes."""
    if not subscription.tags_set or subscription.class_filter_mode:
        return True
    return tags in subscription.tags_set


def _condition(topic: str, expression: str | None, expression_type: str, version_ms: int) -> SubscriptionData:
    if not expression:
        raise ConfigError(
            f"subscription of {topic!r}: a {expression_type} expression is empty: give a condition, or '*'"
        )
    return SubscriptionData(
        topic=topic, sub_string=expression, expression_type=expression_type, sub_version=version_ms
    )


def _tags_of(topic: str, expression: str) -> tuple[str, ...]:
    trimmed = (part.strip(_JAVA_BLANKS) for part in expression.split(_SEPARATOR))
    tags = tuple(dict.fromkeys(tag for tag in trimmed if tag))
    if not tags:
        raise ConfigError(f"subscription of {topic!r}: {expression!r} has no tag: want e.g. 'a || b', or '*'")
    return tags
