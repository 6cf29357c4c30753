"""PINNED_BY_IP: all queues go to the members on some machines."""

from collections.abc import Sequence
from dataclasses import field
from typing import Literal, get_args

from rmqtools.errors import ConfigError
from rmqtools.model.queue import MessageQueue
from rmqtools.model.record import record
from rmqtools.policy.allocate.addresses import members_within, parse_networks
from rmqtools.policy.allocate.averagely import AllocateAveragely
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy

WhenAbsent = Literal["nobody", "everybody"]


@record(kw_only=False)
class AllocatePinnedByIp:
    """The members whose address is one of ``ips`` share all queues; the others get nothing.

    Attributes:
        ips: addresses and networks (``10.0.0.1``, ``10.1.0.0/16``), compared as numbers, not as text.
        inner: the strategy that shares among the pinned members.
        when_absent: the owners of the queues while no pinned member is connected: ``nobody`` (messages wait)
            or ``everybody`` (as without pins). There is no default, because each choice is wrong for some
            users.

    Source of the rule: our own; the address is :func:`rmqtools.allocate.client_address`.
    """

    ips: Sequence[str]
    inner: AllocateMessageQueueStrategy = field(default_factory=AllocateAveragely)
    when_absent: WhenAbsent = field(kw_only=True)
    name = "PINNED_BY_IP"

    def __post_init__(self) -> None:
        check_when_absent(self.when_absent)
        if not parse_networks(self.ips):
            raise ConfigError("ips is empty: want at least one, e.g. ['10.0.0.1']")
        object.__setattr__(self, "ips", tuple(self.ips))

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """See the class."""
        pinned = members_within(parse_networks(self.ips), client_ids)
        sharing = client_ids if not pinned and self.when_absent == "everybody" else pinned
        return self.inner.allocate(group, client_id, queues, sharing) if client_id in sharing else []


def check_when_absent(value: object) -> None:
    """Refuse a value that is not a :data:`WhenAbsent`.

    Raises:
        ConfigError: it is another value.
    """
    if value not in get_args(WhenAbsent):
        raise ConfigError(f"when_absent={value!r}: want one of {', '.join(get_args(WhenAbsent))}")
