"""A broker that stands still, beside the official Java client.

    python -m tools.measure.stalled_broker [--seconds 150]

Two brokers with four queues each; broker-a stands still (SIGSTOP) for 11 s while a member starts, or for 45 s
while members run. One message a second goes to each queue of broker-b, which is healthy. Groups have two
members, of ours and of Java's, concurrently and in order.
"""

import argparse
import sys
from collections.abc import Sequence

from tests.support.java_peer import JavaPeer, JavaPeerError
from tools.measure.stalled_broker.mixed import show_mixed
from tools.measure.stalled_broker.scene import Stall

_STALLS = {"starting": Stall(15, 26), "running": Stall(15, 60)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the situations; return 1 if ours was worse than Java's in one."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.measure.stalled_broker",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seconds", type=int, default=150, help="of each situation (default: %(default)s)")
    seconds = parser.parse_args(arguments).seconds
    peer, worse = JavaPeer.compiled(), 0
    for orderly in (False, True):
        for name, stall in _STALLS.items():
            try:
                worse += show_mixed(peer, name, stall, seconds=seconds, orderly=orderly)
            except JavaPeerError as error:  # the machine is too busy for it; the others may do
                print(f"{name}, orderly={orderly}: {error}", flush=True)
                worse += 1
    return bool(worse)


if __name__ == "__main__":
    sys.exit(main())
