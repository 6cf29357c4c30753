"""The member list of a group, and which of its entries are one member's.

A broker keeps an entry for each connection that sent a heartbeat. One that stood still handles heartbeats of
connections that have been closed meanwhile, and lists a member again for each, for up to two minutes.
"""

from collections.abc import Callable, Collection, Iterable, Sequence

from rmqtools.model.record import record

FIRST_ENTRY = (0,)


@record(kw_only=False)
class MemberList:
    """The members of a group, as a broker lists them.

    Attributes:
        client_ids: every entry; a member can have several.
        entries: which of the entries with this member's id are its own, counted from 0.
        is_settled: whether this member may change its share. If not, it keeps its queues for this round.
    """

    client_ids: tuple[str, ...]
    entries: tuple[int, ...] = FIRST_ENTRY
    is_settled: bool = True


def has_doubles(client_ids: Collection[str]) -> bool:
    """Return whether a client id is listed more than once."""
    return len(set(client_ids)) < len(client_ids)


def own_entries(addresses: Iterable[str], is_own: Callable[[str], bool]) -> tuple[int, ...]:
    """Return which entries of a client id belong to this process.

    Args:
        addresses: the client addresses of the entries, ``host:port``, in any order.
        is_own: whether an address is, or was, of a socket of this client.

    Returns:
        Positions in the sorted addresses, so that two processes with one client id take different ones. All
        of them if no address is known, as behind NAT: queues without an owner would be worse than two owners.
    """
    listed = sorted(addresses)
    found = tuple(number for number, addr in enumerate(listed) if is_own(addr))
    return found or tuple(range(len(listed)))


_OTHER_ENTRY = "\0"  # behind the client id of an entry that is not the one that counts


def with_one_entry(client_ids: Sequence[str], client_id: str, entry: int) -> list[str]:
    """Return a sorted list in which only one entry has this client id; other entries keep their place."""
    first = client_ids.index(client_id)
    kept = first + min(entry, client_ids.count(client_id) - 1)
    return [
        one + _OTHER_ENTRY if one == client_id and place != kept else one
        for place, one in enumerate(client_ids)
    ]


def client_id_of(entry: str) -> str:
    """Return the client id of an entry of such a list."""
    return entry.removesuffix(_OTHER_ENTRY)
