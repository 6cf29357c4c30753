"""How a broker treats a consumer group.

Source of the names: SubscriptionGroupConfig, GroupRetryPolicy and what it holds, SubscriptionGroupWrapper,
SetMessageRequestModeRequestBody, GroupList (Java client 5.5.0).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rmqtools.model.group import MessageRequestMode


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleSubscriptionData:
    """What of a topic a group wants, for brokers that keep it."""

    topic: str
    expression_type: str | None = None
    expression: str | None = None
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialRetryPolicy:
    """Milliseconds until the first retry, at most, and by what they grow."""

    initial: int
    max: int
    multiplier: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomizedRetryPolicy:
    """Milliseconds until each retry."""

    next: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRetryPolicy:
    """When failed messages come again: ``type`` CUSTOMIZED (without delays the broker's), or EXPONENTIAL."""

    type: str = "CUSTOMIZED"
    exponential_retry_policy: ExponentialRetryPolicy | None = None
    customized_retry_policy: CustomizedRetryPolicy | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionGroupConfig:
    """One group. ``retry_max_times``: failed more often, a message is a dead letter."""

    group_name: str
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    consume_message_orderly: bool = False
    retry_queue_nums: int = 1
    retry_max_times: int = 16
    group_retry_policy: GroupRetryPolicy = field(default_factory=GroupRetryPolicy)
    broker_id: int = 0
    which_broker_when_consume_slowly: int = 1
    notify_consumer_ids_changed_enable: bool = True
    group_sys_flag: int = 0
    consume_timeout_minute: int = 15
    subscription_data_set: tuple[SimpleSubscriptionData, ...] | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionGroupWrapper:
    """All groups of a broker."""

    subscription_group_table: Mapping[str, SubscriptionGroupConfig] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetMessageRequestModeRequestBody:
    """Whether a group pulls or pops a topic; popping, with how many members it shares its queues (0: all)."""

    topic: str
    consumer_group: str
    mode: str = MessageRequestMode.PULL
    pop_share_queue_num: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupList:
    """Group names, in no order."""

    group_list: tuple[str, ...] = ()
