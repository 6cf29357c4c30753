"""``python -m tests.docs.pictures``: the pictures in docs/assets, by the commands that users run.

A group on a cluster in this process: its shares as ``rmqtools allocate --plot`` draws them. On a bad day of
it, ``rmqtools top``: the findings in a terminal of 80 x 24, and the group's page in one of 120 x 40.
"""

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rmqtools import Admin, ClientConfig, MessageQueue
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.testing import FakeCluster
from tests.unit.cli.top.scene import report, watching

ASSETS = Path(__file__).resolve().parents[2] / "docs" / "assets"
SHARES, TOP, TOP_WIDE = "shares.svg", "top.svg", "top-wide.svg"
_COMMAND = (sys.executable, "-c", "from rmqtools.cli import main; main()")
_BROKERS = ("broker-a", "broker-b")
_MEMBERS = ("10.0.0.5@100", "10.0.0.6@100", "10.0.0.7@100")
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)  # from the network: a browser's own do


@contextmanager
def cluster_with_group() -> Iterator[FakeCluster]:
    """Yield a cluster with 12 queues, which three members share by AVG, each some messages behind."""
    queues = [MessageQueue("orders", broker, number) for broker in _BROKERS for number in range(6)]
    with FakeCluster(brokers=_BROKERS) as cluster:
        cluster.create_topic("orders", queues=6)
        cluster.create_group("billing")
        for place, queue in enumerate(queues):
            cluster.store("orders", *[b"order"] * (3 * place), queue=queue)
            cluster.commit("billing", queue, place)
        for place, client_id in enumerate(_MEMBERS):
            owned = [(queue.broker_name, queue.queue_id) for queue in queues[4 * place : 4 * place + 4]]
            cluster.add_member("billing", client_id, report("orders", *owned, strategy="AVG"))
        yield cluster


def draw_shares(cluster: FakeCluster, path: Path) -> None:
    """Draw who owns which queue now, and who would with another strategy."""
    what = ("allocate", "-t", "orders", "-g", "billing", "-s", "AVG", "--compare", "CONSISTENT_HASH")
    subprocess.run(
        [*_COMMAND, *what, "-n", cluster.name_server, "--plot", path], check=True, capture_output=True
    )


def make_it_a_bad_day(cluster: FakeCluster) -> None:
    """Let a listener be stuck, and dead letters come; forbid writing to a broker."""
    cluster.create_topic("%DLQ%billing", queues=1)
    cluster.store("%DLQ%billing", b"7 apples", b"8 pears", store_timestamp_ms=SYSTEM_CLOCK.now_ms() - 95_000)
    stuck = report("orders", *((_BROKERS[0], number) for number in range(4)), strategy="AVG")
    call = {"PROP_RMQTOOLS_LONGEST_CALL": "754.0"}
    cluster.add_member("billing", _MEMBERS[0], replace(stuck, properties={**stuck.properties, **call}))
    with Admin(ClientConfig(name_server=cluster.name_server)) as admin:
        admin.forbid_writing(_BROKERS[1])


def draw_top(cluster: FakeCluster, path: Path, *, size: tuple[int, int], keys: Sequence[str]) -> None:
    """Draw what ``top`` shows in a terminal of this size, after these keys."""
    with watching(cluster, size=size, tab="f") as view:
        view.until("listener_slow", "dead_letters")
        view.press(*keys)
        view.until(*(["AAAA", "OWNER"] if keys else ["broker_read_only"]))
        drawn = view.app.export_screenshot(title="rmqtools top")
    path.write_text(_FONTS.sub("", drawn))


def main(folder: Path = ASSETS) -> None:
    """Draw all pictures into the folder."""
    with cluster_with_group() as cluster:
        draw_shares(cluster, folder / SHARES)
        make_it_a_bad_day(cluster)
        draw_top(cluster, folder / TOP, size=(80, 24), keys=())
        draw_top(cluster, folder / TOP_WIDE, size=(120, 40), keys=("enter",))


if __name__ == "__main__":
    main()
