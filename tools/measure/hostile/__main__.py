"""Prints the table of hostile inputs: memory, time, the second client's longest send.

Arguments: parts of names; none: all.
"""

import sys

from tools.measure.hostile.cases import CASES
from tools.measure.hostile.measure import measure_apart

for name in CASES:
    if not sys.argv[1:] or any(part in name for part in sys.argv[1:]):
        print(f"| {name} | {measure_apart(name)}", flush=True)
