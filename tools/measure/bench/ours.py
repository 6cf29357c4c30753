"""Our side of the bench: ``python -m tools.measure.bench.ours NAME_SERVER``; works come as in program.py."""

import sys
from collections.abc import Callable

from tools.measure.bench.ours_pull import poll
from tools.measure.bench.ours_push import latency, push, push_aio
from tools.measure.bench.ours_read import Readers
from tools.measure.bench.ours_send import Sends
from tools.measure.bench.program import Result, Work, serve


def main(name_server: str) -> None:
    """Do works until the input ends."""
    sends, readers = Sends(name_server), Readers(name_server)
    works: dict[str, Callable[[Work], Result]] = {
        "send": sends.run,
        "arrow": readers.arrow,
        "objects": readers.objects,
        "count": readers.count,
        "push": lambda work: (push_aio if work["face"] == "aio" else push)(name_server, work),
        "poll": lambda work: poll(name_server, work),
        "latency": lambda work: latency(name_server, work),
    }
    try:
        serve(works)
    finally:
        sends.close()
        readers.close()


if __name__ == "__main__":
    main(sys.argv[1])
