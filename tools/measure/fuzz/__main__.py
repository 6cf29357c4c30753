"""``python -m tools.measure.fuzz``: damaged input for ten minutes, or one input again by its number."""

import argparse
import sys

from tools.measure.fuzz.run import attempt, findings
from tools.measure.fuzz.targets import TARGETS


def main() -> int:
    """Run, print what was found, and return 1 if that is anything."""
    parser = argparse.ArgumentParser(prog="python -m tools.measure.fuzz", description=__doc__)
    parser.add_argument("--target", choices=TARGETS, action="append", help="only this one")
    parser.add_argument("--seconds", type=float, default=600, help="how long (default: %(default)s)")
    parser.add_argument(
        "--first", type=int, default=0, help="the first input's number (default: %(default)s)"
    )
    parser.add_argument("--number", type=int, help="this input only")
    arguments = parser.parse_args()
    names = arguments.target or list(TARGETS)
    if arguments.number is not None:
        again = [each for name in names if (each := attempt(name, arguments.number))]
        print(*again, sep="\n")
        return bool(again)
    *found, tried = findings(names, arguments.seconds, arguments.first)
    print(*found, f"{tried} inputs, {len(found)} findings", sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
