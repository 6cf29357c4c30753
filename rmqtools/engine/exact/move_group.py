"""Moves of groups to a copy: where a group goes on there, and what must not be left behind."""

from collections.abc import Collection

from rmqtools.engine.admin.group_offsets import GroupOffsetAdmin
from rmqtools.engine.admin.groups import GroupAdmin
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.exact.tail import WriterMemory
from rmqtools.errors import ConfigError, TopicNotFoundError
from rmqtools.model.append_mark import AppendMark
from rmqtools.model.names import pop_retry_topic, retry_topic
from rmqtools.number_of import number_of
from rmqtools.policy.exact_append import check_origin

_FIRST_LOOK, _LONGEST_LOOK = 32, 8192  # messages


async def find_place(memory: WriterMemory, origin: str, position: int) -> int:
    """Return the offset behind the last copy that a group has consumed; ``position``: its next source offset.

    Without a consumed copy, this is the begin of the queue. So no message of other producers is left out.

    Raises:
        ConfigError: the copy is not as far as the group.
        ExactAppendError: the writer's messages came from another queue.
    """
    tail = await memory.find_tail(origin=origin, is_new=False)
    copied = tail.next_position
    if copied is None or copied < position:
        how_far = "is not known"
        if copied is not None:
            how_far = f"is {number_of(position - copied, 'message')} behind the group"
        raise ConfigError(
            f"the copy of {origin!r} in {memory.queue} {how_far}: wait until the mirror {memory.writer!r} "
            "has no lag, and move the group then"
        )
    low, _ = await memory.bounds()
    high = low if tail.queue_offset is None else tail.queue_offset + 1  # old copies sent again are behind it
    while low < high:
        middle = (low + high) // 2
        found = await _first_mark(memory, middle, high)
        if found is not None and found[1].position < position:
            check_origin(memory.queue, found[1], origin)
            low = found[0] + 1
        else:
            high = middle
    return low


async def _first_mark(memory: WriterMemory, begin: int, end: int) -> tuple[int, AppendMark] | None:
    """Return the first message of a writer in a range: its offset and mark; None: there is none."""
    size = _FIRST_LOOK
    while begin < end:
        stop = min(end, begin + size)
        async for found in memory.marks(begin, stop):
            if found[1].writer == memory.writer:
                return found
        begin, size = stop, min(_LONGEST_LOOK, 2 * size)
    return None


async def check_retries(client: ClientCore, group: str, topics: Collection[str]) -> None:
    """Refuse a group with failed messages that wait in its retry topics, unless these are among the topics.

    Raises:
        ConfigError: names the topic, and how many messages wait there.
    """
    admin = GroupOffsetAdmin(client)
    names = [retry_topic(group), *(pop_retry_topic(topic, group) for topic in topics)]
    for name in names:
        try:
            offsets = {} if name in topics else await admin.fetch_consumer_offsets(group, name)
        except TopicNotFoundError:
            continue
        waiting = 0
        for queue, offset in offsets.items():
            begin = await admin.min_offset(queue) if offset is None else offset
            waiting += max(0, await admin.max_offset(queue) - begin)
        if waiting:
            raise ConfigError(
                f"group {group!r} has {waiting} failed messages in {name!r}, which the mirror does not copy: "
                "let its members consume them first, or name this topic, too, when you copy and move"
            )


async def check_no_members(client: ClientCore, group: str) -> None:
    """Refuse a group with members.

    Raises:
        ConfigError: it has some.
        BrokerError: a broker does not list them.
    """
    members = (await GroupAdmin(client).fetch_consumer_connection(group)).connection_set
    if members:
        raise ConfigError(
            f"group {group!r} has {number_of(len(members), 'member')} at the target, and members "
            "would overwrite its offsets: stop them first"
        )
