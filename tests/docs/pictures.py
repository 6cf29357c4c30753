"""``python -m tests.docs.pictures``: the pictures in docs/assets, by the commands that users run.

A group on a cluster in this process: its shares as ``rmqtools allocate --plot`` draws them, and the group's
page of ``rmqtools top``.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rmqtools import MessageQueue
from rmqtools.testing import FakeCluster
from tests.unit.cli.top.scene import report, until, watch

ASSETS = Path(__file__).resolve().parents[2] / "docs" / "assets"
SHARES, TOP = "shares.svg", "top.svg"
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


def draw_top(cluster: FakeCluster, path: Path) -> None:
    """Draw the page of a group in a terminal of 80 x 24."""
    drawn = []

    async def steps(app, pilot):
        await until(app, pilot, "billing")
        await pilot.press("enter")
        await until(app, pilot, *_MEMBERS, "AAAA")
        drawn.append(app.export_screenshot(title="rmqtools top"))

    watch(cluster, steps)
    path.write_text(_FONTS.sub("", *drawn))


def main(folder: Path = ASSETS) -> None:
    """Draw all pictures into the folder."""
    with cluster_with_group() as cluster:
        draw_shares(cluster, folder / SHARES)
        draw_top(cluster, folder / TOP)


if __name__ == "__main__":
    main()
