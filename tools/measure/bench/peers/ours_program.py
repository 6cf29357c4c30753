"""Our side, with nothing else in its process.

python -m tools.measure.bench.peers.ours_program NAME_SERVER
"""

import sys
import time

from rmqtools import Message, Producer, ProducerConfig
from tools.measure.bench.ours_push import push
from tools.measure.bench.program import Result, Work, serve


def send(producer: Producer, work: Work) -> Result:
    """One message at a time."""
    body, seconds, count = b"x" * int(work["size"]), float(work["seconds"]), 0
    began = time.perf_counter()
    while time.perf_counter() < began + seconds:
        producer.send(Message(work["topic"], body, "TagA", (f"k{count}",), {"src": "bench"}))
        count += 1
    return {"count": count, "seconds": time.perf_counter() - began}


if __name__ == "__main__":
    name_server = sys.argv[1]
    config = ProducerConfig(name_server=name_server, group="bench_peers", send_timeout=20.0)
    with Producer(config) as producer:
        serve({"send": lambda work: send(producer, work), "push": lambda work: push(name_server, work)})
