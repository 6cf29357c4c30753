"""Every size from the network is bounded before anything is allocated: a table of hostile inputs.

``python -m tools.measure.hostile`` prints it. Memory includes the cluster in the same process.
"""

import pytest

from tools.measure.hostile.cases import CASES
from tools.measure.hostile.measure import MIB, measure_apart

MOST_GROWN = 160 * MIB  # 100 MB, and what the cluster in the same process takes for a frame of 16 MB
QUICK = (
    "orderTopicConf 2^31",
    "readQueueNums 2^31",
    "totalQueues 2^31",
    "zstd 20 x 128 MiB, read",
    "pop of 20,000",
    "16 MB of []",
    "14 MB route",
    "header of 2.6 million fields",
)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow, id=name) for name in CASES],
)
def test_a_hostile_input_ends_as_it_must_and_blocks_nobody(name):
    measured = measure_apart(name)

    assert CASES[name].ending in measured.outcome
    assert measured.grown_bytes < MOST_GROWN
    assert measured.busy_send < 1
