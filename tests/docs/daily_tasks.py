"""``python -m tests.docs.daily_tasks``: writes docs/daily-tasks.md, from commands on a real cluster.

With ``--look FOLDER`` it changes no page, and writes what each command prints on a terminal of 100, 80 and 60
columns, to be looked at.
"""

import argparse
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from rmqtools import (
    Admin,
    ClientConfig,
    ConsumeConcurrentlyStatus,
    ConsumeContext,
    Message,
    MessageExt,
    MessageListener,
    Producer,
    ProducerConfig,
    PushConsumer,
    PushConsumerConfig,
)
from rmqtools.allocate import AllocateByPins
from rmqtools.cluster import LocalCluster
from tests.support.cluster_scene import wait_until
from tests.support.resting import RestingCluster
from tests.support.tables import table_rows

PAGE = Path(__file__).resolve().parents[2] / "docs" / "daily-tasks.md"
TABLE = Path(__file__).with_suffix(".md")
WIDTHS = (60, 80, 100)
_STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")
NONE = "–"


class Task(NamedTuple):
    """A task of an operator's day, and the commands for it; of ours also what it prints.

    ``ours`` is empty for what is left to ``mqadmin``.
    """

    name: str
    mqadmin: str
    kafka: str
    ours: str


TASKS = tuple(Task(*cells) for cells in table_rows(TABLE))
SHOWN = tuple(task for task in TASKS if task.ours)
_HEAD = """# Daily tasks, and the tools for them

The daily tasks of operators, with `mqadmin` (of RocketMQ 5.5.0), `rpk` and `kcat` (of the Kafka protocol),
and `rmqtools`. A test looks up the commands and options of `mqadmin` in its help. Those of `kcat` are from
its help (1.7.1), those of `rpk`, which we did not run, from its source of December 2024. "–" means: no
command. Below the table is the output of each of our commands, on a cluster of two brokers 5.5.0 and a
terminal of 100 columns; `python -m tests.docs.daily_tasks` runs the commands and writes this page.
[The command line, task by task](commands.md) has more tasks.
"""


def run(command: str, width: int, folder: Path, variables: Mapping[str, str]) -> str:
    """What a command prints to a terminal of this width, without its colours."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, width, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        ["bash", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=terminal,
        cwd=folder,
        env={**kept, "TERM": "xterm-256color", **variables},
    )
    os.close(terminal)
    shown = b""
    try:
        while data := os.read(controller, 65536):
            shown += data
    except OSError:  # the terminal's other end is closed
        pass
    os.close(controller)
    process.wait(60)
    text = _STYLE.sub("", shown.decode()).replace("\r\n", "\n")
    return "\n".join(line.rpartition("\r")[2].rstrip() for line in text.splitlines()).strip("\n")


@contextmanager
def scene() -> Iterator[tuple[Path, dict[str, str]]]:
    """A cluster with topics, two members of a group, and a group without members."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        programs = folder / "bin"
        programs.mkdir()
        program = programs / "rmqtools"
        program.write_text(f"#!{sys.executable}\nfrom rmqtools.cli import main\nmain()\n")
        program.chmod(0o755)
        cluster = stack.enter_context(RestingCluster(brokers=2, directory=folder / "cluster"))
        variables = {
            "NAMESRV_ADDR": cluster.name_server,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(PAGE.parents[1]),
            "RMQTOOLS_CONFIG": str(folder / "config.toml"),
            "XDG_STATE_HOME": str(folder / "state"),
            "RMQTOOLS_ALLOWED_GROUPS": "billing",
            "RMQTOOLS_CLUSTER_DIR": str(folder / "cluster"),
            "TZ": "Europe/Berlin",
        }
        admin = stack.enter_context(Admin(ClientConfig(name_server=cluster.name_server)))
        for topic in ("payments", "copy", "parcels"):
            admin.create_topic(topic, read_queue_nums=2, write_queue_nums=2)
        admin.create_topic("kept", read_queue_nums=1, write_queue_nums=1, attributes={"reserve.time": "24"})
        for number in (1, 2):
            config = PushConsumerConfig(
                name_server=cluster.name_server, group="billing", client_ip=f"10.0.0.{5 + number}"
            )
            consumer = PushConsumer(config, strategy=AllocateByPins(when_absent="nobody"))
            consumer.subscribe("payments", lambda messages, context: None)
            stack.enter_context(consumer)
        for tags in ("new", "paid"):
            stack.enter_context(_consumer(cluster, "mixed", "payments", lambda messages, context: None, tags))
        stack.enter_context(_consumer(cluster, "shipping", "parcels", _fail_for_good))
        shop = stack.enter_context(Producer(ProducerConfig(name_server=cluster.name_server, group="shop")))
        wait_until(lambda: len(admin.fetch_group("billing").members) == 2)
        run(
            "seq 100 | rmqtools produce payments;"
            "rmqtools consume payments -g audit --from earliest --limit 50;"
            """echo '{"body": "2 pears", "keys": "order-9", "delay_level": 18}' > later.jsonl""",
            100,
            folder,
            variables,
        )
        run("seq 3 | rmqtools produce parcels", 100, folder, variables)
        for number in range(4):
            shop.send(Message("payments", b"%d" % number))
        wait_until(lambda: "shop" in admin.fetch_producers())
        wait_until(lambda: _count(admin, "%DLQ%shipping") == 3)
        yield folder, variables


def _count(admin: Admin, topic: str) -> int:
    if topic not in admin.fetch_topic_list():
        return 0
    return sum(each.max_offset for each in admin.fetch_topic_stats(topic).offset_table.values())


def _consumer(
    cluster: LocalCluster, group: str, topic: str, listener: MessageListener, tags: str = "*"
) -> PushConsumer:
    config = PushConsumerConfig(
        name_server=cluster.name_server,
        group=group,
        instance_name=f"{group}-{tags}",
        consume_from="CONSUME_FROM_FIRST_OFFSET",
    )
    consumer = PushConsumer(config)
    consumer.subscribe(topic, listener, tags=tags)
    return consumer


def _fail_for_good(messages: Sequence[MessageExt], context: ConsumeContext) -> ConsumeConcurrentlyStatus:
    context.delay_level_when_next_consume = -1  # no retry: a dead letter at once
    return ConsumeConcurrentlyStatus.RECONSUME_LATER


def written(shown: Mapping[Task, str]) -> str:
    """The page."""
    cells = [(task.name, task.mqadmin, task.kafka, _ours(task)) for task in TASKS]
    rows = ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in cells]
    table = "\n".join(["| task | mqadmin | rpk, kcat | rmqtools |", "|---|---|---|---|", *rows])
    parts = [f"## {_title(task)}\n\n```text\n$ {task.ours}\n{text}\n```" for task, text in shown.items()]
    return "\n\n".join([_HEAD.rstrip(), table, *parts]) + "\n"


def _ours(task: Task) -> str:
    return f"[`{_command(task)}`](#{_anchor(task)})" if task.ours else "left to `mqadmin`"


def _title(task: Task) -> str:
    return task.name[0].upper() + task.name[1:]


def _command(task: Task) -> str:
    """The last of the commands that is ours."""
    parts = re.split(r" (?:\||&&|&) |; ", task.ours)
    return [part for part in parts if part.startswith("rmqtools")][-1]


def _anchor(task: Task) -> str:
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", task.name.lower())).strip("-")


def _steady(text: str, folder: Path) -> str:
    """What a command printed, without this machine's paths."""
    return text.replace(str(folder / "cluster"), "/var/tmp/cluster").replace(str(folder), "/home/me")


def main() -> None:
    """Write the page, or the pictures of each width."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--look", type=Path)
    given = parser.parse_args()
    with scene() as (folder, variables):
        if given.look is None:
            shown = {task: _steady(run(task.ours, 100, folder, variables), folder) for task in SHOWN}
            PAGE.write_text(written(shown))
            return
        for width in WIDTHS:
            texts = [f"$ {task.ours}\n{run(task.ours, width, folder, variables)}\n" for task in SHOWN[:-2]]
            (given.look / f"{width}.txt").write_text("\n".join(texts))


if __name__ == "__main__":
    main()
