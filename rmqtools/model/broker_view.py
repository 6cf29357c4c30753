"""A broker as an operator sees it: its state, and what still waits on it."""

from collections.abc import Mapping
from dataclasses import field
from statistics import median_low

from rmqtools.model.record import record


def common_clock(clocks: Mapping[str, float]) -> float:
    """Return how many seconds the clocks of most brokers are ahead of this machine's; 0.0: none is known."""
    return median_low(clocks.values() or [0.0])


@record
class BrokerState:
    """One server of a broker at one moment.

    Attributes:
        broker_name: the name that it shares with its slaves.
        cluster: its cluster.
        broker_id: 0: the master.
        addr: its address.
        statistics: its answer to GET_BROKER_RUNTIME_INFO; empty if it gave none.
        error: why there is no answer; None: it answered.
        is_read_only: whether routes say that producers may not send to it.
        is_alone: whether it is the first slave of a broker that has no master now.
        clock: how many seconds its clock is ahead of this machine's; None: not known.
    """

    broker_name: str
    cluster: str = ""
    broker_id: int = 0
    addr: str = ""
    statistics: Mapping[str, str] = field(default_factory=dict)
    error: str | None = None
    is_read_only: bool = False
    is_alone: bool = False
    clock: float | None = None

    @property
    def role(self) -> str:
        """The text ``master``, or ``slave 1``."""
        return f"slave {self.broker_id}" if self.broker_id else "master"

    def number(self, name: str) -> float | int | None:
        """Return a statistic; of several (10 s, 1 min, 10 min) the first; None if the broker has none."""
        words = self.statistics.get(name, "").split()
        try:
            return int(words[0]) if words and words[0].lstrip("-").isdigit() else float(words[0])
        except (ValueError, IndexError):
            return None

    @property
    def disk(self) -> float | None:
        """The used share of the fullest disk of its commit log; None if it does not say."""
        # brokers 5.x have one for each directory, with its path behind the name
        names = [name for name in self.statistics if name.startswith("commitLogDiskRatio")]
        known = [ratio for name in names if (ratio := self.number(name)) is not None]
        return max(known, default=None)


@record
class NameServerState:
    """One name server of the settings at one moment.

    Attributes:
        addr: its address.
        brokers: the names of the brokers that it knows.
        error: why there is no answer; None: it answered.
    """

    addr: str
    brokers: frozenset[str] = frozenset()
    error: str | None = None


@record
class GroupBacklog:
    """Messages that a group has not consumed on one broker, its retry topic included, and its members."""

    lag: int
    members: int


@record
class BrokerBacklog:
    """Everything that waits on one broker at one moment.

    Attributes:
        broker_name: its name.
        ends: the last offsets of each topic, added up: they grow while messages come in.
        groups: the groups that have not consumed everything.
        delayed: messages with a delay level whose time has not come, retries included.
        timed: messages with a delivery time that has not come, and popped ones that may be delivered again.
        half: transactions that are not decided, or decided since the broker's last check: an upper bound.
        popped: popped messages whose acknowledgement the broker has not processed.
    """

    broker_name: str
    ends: Mapping[str, int] = field(default_factory=dict)
    groups: Mapping[str, GroupBacklog] = field(default_factory=dict)
    delayed: int = 0
    timed: int = 0
    half: int = 0
    popped: int = 0
