"""A broker that stands still, beside the official Java client.

    python -m tools.measure.stalled_broker [alone|mixed]... [--seconds 150] [--svg FOLDER]

Two brokers with four queues each; broker-a stands still (SIGSTOP) for 11 s while a member starts, or for 45 s
while members run. One message a second goes to each queue of broker-b, which is healthy.

- alone: a member of ours and one of Java's, each in a group of its own; queues and messages of each second.
- mixed: two members a group, of ours and of Java's; concurrently and in order.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.java_peer import JavaPeer, JavaPeerError
from tools.measure.stalled_broker.alone import show_alone
from tools.measure.stalled_broker.mixed import show_mixed
from tools.measure.stalled_broker.scene import Stall

_ALONE = {"starting": Stall(0, 11), "running": Stall(15, 60)}
_MIXED = {"starting": Stall(15, 26), "running": Stall(15, 60)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the situations; return 1 if ours was worse than Java's in one."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.measure.stalled_broker",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", nargs="*", help="alone, mixed (default: both)")
    parser.add_argument("--seconds", type=int, default=150, help="of each situation (default: %(default)s)")
    parser.add_argument("--svg", type=Path, help="folder for a picture of each situation of members alone")
    chosen = parser.parse_args(arguments)
    what = chosen.what or ["alone", "mixed"]
    if unknown := set(what) - {"alone", "mixed"}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}: give alone or mixed")
    peer, worse = JavaPeer.compiled(), 0
    if "alone" in what:
        for name, stall in _ALONE.items():
            worse += show_alone(peer, name, stall, chosen.seconds, chosen.svg)
    if "mixed" in what:
        for orderly in (False, True):
            for name, stall in _MIXED.items():
                try:
                    worse += show_mixed(peer, name, stall, seconds=chosen.seconds, orderly=orderly)
                except JavaPeerError as error:  # the machine is too busy for it; the others may do
                    print(f"mixed, {name}, orderly={orderly}: {error}", flush=True)
                    worse += 1
    return bool(worse)


if __name__ == "__main__":
    sys.exit(main())
