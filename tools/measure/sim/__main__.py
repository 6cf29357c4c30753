"""``python -m tools.measure.sim``: many runs, or one again by its seed.

The first line of a finding is what it takes to see it again. Set and dict orders of texts depend on
``PYTHONHASHSEED``, so it is set, by starting the process anew.
"""

import argparse
import logging
import os
import sys
import time

from tools.measure.sim.exact import simulate_exact
from tools.measure.sim.mirror import simulate_mirror
from tools.measure.sim.run import Result, simulate
from tools.measure.sim.staged import simulate_staged


def main() -> int:
    """Run, print, and return 1 if something was found."""
    parser = argparse.ArgumentParser(prog="python -m tools.measure.sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10_000, help="how many runs (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default: %(default)s)")
    parser.add_argument("--exact", action="store_true", help="runs of exact appenders")
    parser.add_argument("--mirror", action="store_true", help="runs of mirrors")
    parser.add_argument("--staged", action="store_true", help="runs of staged writes")
    parser.add_argument("--seed", type=int, help="run this one, and print its history")
    arguments = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.execve(
            sys.executable,
            [sys.executable, "-m", "tools.measure.sim", *sys.argv[1:]],
            {**os.environ, "PYTHONHASHSEED": "0"},
        )
    logging.getLogger("rmqtools").setLevel(logging.CRITICAL)  # of troubles that are meant
    run, kind = simulate, ""
    if arguments.exact:
        run, kind = simulate_exact, " --exact"
    elif arguments.mirror:
        run, kind = simulate_mirror, " --mirror"
    elif arguments.staged:
        run, kind = simulate_staged, " --staged"
    if arguments.seed is not None:
        result = run(arguments.seed)
        print(result.history, end="")
        _show(result, kind)
        return bool(result.found)
    began, wrong = time.monotonic(), 0
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        result = run(seed)
        if result.found:
            wrong += 1
            _show(result, kind)
    print(f"{arguments.seeds} runs, {wrong} with findings, {time.monotonic() - began:.0f} s")
    return bool(wrong)


def _show(result: Result, kind: str) -> None:
    print(f"python -m tools.measure.sim{kind} --seed {result.seed}")
    for trouble in result.troubles:
        print(f"  {trouble}")
    for found in result.found:
        print(f"  FOUND {found}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
