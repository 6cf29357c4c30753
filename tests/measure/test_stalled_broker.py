"""A broker that stands still while members join, in small: ``python -m tools.measure.stalled_broker``.

Java's members choose a broker by chance for each list, so what they do to a mixed group differs from run to
run: here only the bars that hold in each run.
"""

import pytest

from tools.measure.stalled_broker.mixed import run_mixed
from tools.measure.stalled_broker.scene import Stall

pytestmark = [pytest.mark.broker, pytest.mark.slow]

ROUND = 20.0


def test_order_holds_in_every_mixed_group_and_ours_leave_no_queue_of_the_healthy_broker(java_peer):
    seen = run_mixed(java_peer, Stall(5, 16), seconds=45, starting=True, orderly=True)

    assert {members: one.reorder for members, one in seen.items()} == dict.fromkeys(seen, 0)
    assert seen["ours, ours"].unowned <= ROUND + 1
    assert seen["ours, ours"].received >= seen["ours, ours"].sent - 16  # those of the last seconds
