"""Prints the table of hostile inputs: memory, time, the second client's longest send.

Arguments: parts of names; none: all.
"""

import sys

from tests.hostile.cases import CASES
from tests.hostile.measure import measure_apart

for name in CASES:
    if not sys.argv[1:] or any(part in name for part in sys.argv[1:]):
        print(f"| {name} | {measure_apart(name)}", flush=True)
