"""Groups to share queues among: the classic one, and any that hypothesis makes."""

from dataclasses import dataclass

from hypothesis import strategies as st

from rmqtools.allocate import share
from rmqtools.model.queue import MessageQueue

GROUP = "g"
CLASSIC_QUEUES = [MessageQueue("T", f"broker-{name}", number) for name in "abc" for number in range(3)]
CLASSIC_MEMBERS = [f"10.0.0.{number}@1" for number in range(1, 5)]


@dataclass(frozen=True)
class RoomOfInstance:
    """Brokers ``room-name`` and members ``ip@room-number``."""

    def broker_deploy_in(self, queue):
        return queue.broker_name.partition("-")[0]

    def consumer_deploy_in(self, client_id):
        return client_id.partition("@")[2].partition("-")[0]


_brokers = st.sampled_from(["r1-a", "r1-b", "r2-a", "r3-\U00010000", "r3-\uffee"])
any_queues = st.sets(
    st.builds(MessageQueue, st.just("T"), _brokers, st.integers(0, 9)), min_size=1, max_size=30
)
any_members = st.sets(
    st.builds(
        "10.0.0.{}@{}-{}".format, st.integers(0, 12), st.sampled_from(["r1", "r2", "r4"]), st.integers(0, 9)
    ),
    min_size=1,
    max_size=12,
)


def shares_of(strategy, queues=CLASSIC_QUEUES, members=CLASSIC_MEMBERS):
    """What each member owns."""
    return {member: share(strategy, GROUP, member, queues, members) for member in members}


def show(queues):
    """``a0 b2``: the classic queues, short."""
    return " ".join(f"{queue.broker_name.removeprefix('broker-')}{queue.queue_id}" for queue in queues)


def show_shares(strategy, members=CLASSIC_MEMBERS):
    """The shares of the classic queues, in the order of the members."""
    return [show(queues) for queues in shares_of(strategy, members=members).values()]
