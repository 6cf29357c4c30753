"""The settings of a consumer group on a broker.

Source of the names: SubscriptionGroupConfig, GroupRetryPolicy and what it holds, SubscriptionGroupWrapper,
SetMessageRequestModeRequestBody, GroupList, DataVersion (Java client 5.5.0).
"""

from collections.abc import Mapping
from dataclasses import field
from typing import TypedDict

from rmqtools.model.group import MessageRequestMode
from rmqtools.model.record import record


@record
class SimpleSubscriptionData:
    """A group's subscription to a topic, as brokers can store it."""

    topic: str
    expression_type: str | None = None
    expression: str | None = None
    version: int = 0


@record
class ExponentialRetryPolicy:
    """Milliseconds until the first retry, the maximum, and the factor."""

    initial: int
    max: int
    multiplier: int


@record
class CustomizedRetryPolicy:
    """Milliseconds until each retry."""

    next: tuple[int, ...]


@record
class GroupRetryPolicy:
    """Retries of failed messages: ``type`` CUSTOMIZED (default: the broker's delays) or EXPONENTIAL."""

    type: str = "CUSTOMIZED"
    exponential_retry_policy: ExponentialRetryPolicy | None = None
    customized_retry_policy: CustomizedRetryPolicy | None = None


@record
class SubscriptionGroupConfig:
    """One group. After ``retry_max_times`` retries a message becomes a dead letter."""

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


class GroupSettings(TypedDict, total=False):
    """Settings of a group that an administrator chooses, with the default of a new group.

    consume_enable: whether members may fetch messages (True).
    consume_from_min_enable: whether a new group may begin at a queue's first message (True).
    consume_broadcast_enable: whether members may be broadcasting ones (True).
    consume_message_orderly: whether the group pops in order (False).
    retry_queue_nums: queues of the retry topic on each broker (1); 0: brokers drop what fails.
    retry_max_times: retries after which a message becomes a dead letter (16).
    group_retry_policy: when failed messages are retried (after the broker's delays).
    broker_id: which broker members fetch from first; 0: the master (0).
    which_broker_when_consume_slowly: id of the slave for members that are far behind (1).
    notify_consumer_ids_changed_enable: whether brokers notify members when one joins or leaves (True).
    consume_timeout_minute: minutes after which a popped message comes again (15).
    attributes: attributes of a 5.x group by name, instead of those it has (none).

    Source of the names and defaults: SubscriptionGroupConfig (Java client 5.5.0).
    """

    consume_enable: bool
    consume_from_min_enable: bool
    consume_broadcast_enable: bool
    consume_message_orderly: bool
    retry_queue_nums: int
    retry_max_times: int
    group_retry_policy: GroupRetryPolicy
    broker_id: int
    which_broker_when_consume_slowly: int
    notify_consumer_ids_changed_enable: bool
    consume_timeout_minute: int
    attributes: Mapping[str, str]


@record
class DataVersion:
    """The version of a broker's table: it changes with every change of the table."""

    state_version: int = 0
    timestamp: int = 0
    counter: int = 0


@record
class SubscriptionGroupWrapper:
    """All groups of a broker, or a part of them; ``data_version``: of the broker's table of groups."""

    subscription_group_table: Mapping[str, SubscriptionGroupConfig] = field(default_factory=dict)
    data_version: DataVersion | None = None


@record
class SetMessageRequestModeRequestBody:
    """Choice of pulling or popping for a group and a topic; for POP, how many share a queue (0: all)."""

    topic: str
    consumer_group: str
    mode: str = MessageRequestMode.PULL
    pop_share_queue_num: int = 0


@record
class GroupList:
    """Group names, unsorted."""

    group_list: tuple[str, ...] = ()
