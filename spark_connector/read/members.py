"""Finds the queues of one member of a live consumer group, without joining the group or committing."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from rmqtools import MessageQueue
from rmqtools.allocate import AllocateByPins, AllocateMessageQueueStrategy, client_address
from rmqtools.clock import SYSTEM_CLOCK, as_time
from rmqtools.errors import ConfigError
from rmqtools.log import get_logger
from spark_connector.options.allocation import queues_of_member
from spark_connector.options.queue_json import places
from spark_connector.options.read_settings import ReadOptions

if TYPE_CHECKING:
    from rmqtools import Admin

log = get_logger(__name__)


def fetch_queues_of_member(
    admin: "Admin", options: ReadOptions, queues: Collection[MessageQueue]
) -> list[MessageQueue]:
    """Return the ``queues`` that member ``asMember`` owns, or would own by ``allocator``; sorted.

    Raises:
        ConfigError: the group has no such member, or several at its address.
    """
    allocation, group = options.allocation, options.group
    assert allocation is not None
    assert allocation.as_member is not None
    assert group is not None  # the settings have checked it
    client_ids = admin.fetch_consumer_ids(group)
    member = _member(allocation.as_member, group, client_ids)
    if allocation.allocator is None:
        held = admin.fetch_running_info(group, member).queues
        owned = {queue.without_namespace(options.client.namespace) for queue in held}
        mine = sorted(owned.intersection(queues))
    else:
        strategy = _in_force(admin, allocation.strategy, group)
        mine = sorted(queues_of_member(strategy, group, member, queues, client_ids))
    unread = set(queues) - set(mine)
    log.warning("reading_as_member", member=member, group=group, left_unread=places(unread))
    return mine


def _in_force(
    admin: "Admin", strategy: AllocateMessageQueueStrategy, group: str
) -> AllocateMessageQueueStrategy:
    """If the strategy follows the group's pins, return it with the current ones; else return it unchanged."""
    if not isinstance(strategy, AllocateByPins):
        return strategy
    return strategy.with_pins(admin.fetch_pins(group).at(as_time(SYSTEM_CLOCK.now_ms())))


def _member(wanted: str, group: str, client_ids: Sequence[str]) -> str:
    """Find a member by client id, or by its address if only one member has it."""
    if wanted in client_ids:
        return wanted
    at_address = [one for one in client_ids if str(client_address(one)) == wanted]
    if len(at_address) == 1:
        return at_address[0]
    known = ", ".join(client_ids) or "none"
    problem = "several members have that address" if at_address else "no such member"
    raise ConfigError(f"option 'asMember' = {wanted!r}: {problem} in group {group!r}; its members: {known}")
