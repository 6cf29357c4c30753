"""The files of docs/frameworks.md serve in their frameworks, on a real broker, and end at SIGTERM.

Each service also consumes: ``PROBE`` is a push consumer that starts and closes with the producer of the page.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from rmqtools import Admin, Client, ClientConfig, Message, Producer, ProducerConfig
from rmqtools.cluster import ClusterSecurity
from tests.docs.blocks import DOCS, ROOT
from tests.docs.frameworks import framework_programs
from tests.docs.pages import ADDRESS
from tests.docs.test_pages import environment
from tests.support.cluster_scene import wait_until
from tests.support.greenlets_run import PRINTED, run_scene
from tests.support.reading import await_messages
from tests.support.resting import RestingCluster

pytestmark = [pytest.mark.broker, pytest.mark.slow]

COUNT = 40
SECONDS = 60.0
PAGE = (DOCS / "frameworks.md").read_text()
FILES = {
    found[1]: found[0]
    for found in re.findall(r"^```python\n(# ([^\n]*)\n.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
}
COMMANDS = re.findall(r"^((?:celery -|gunicorn -|uvicorn \w+:).*)$", PAGE, re.MULTILINE)
(IN_CONTAINER,) = re.findall(r"^CMD (.*)$", PAGE, re.MULTILINE)
FASTAPI = [re.sub(r" --port \d+", "", one) for one in COMMANDS if "api:app" in one]
OF_DJANGO = "gunicorn.conf.py of Django"
PROBE = """
import os
from rmqtools import PushConsumer, PushConsumerConfig

def note(*words):
    with open("noted", "a") as file:
        print(*words, file=file)

def listen(messages, context):
    for message in messages:
        note("consumed", message.msg_id)

def close():
    consumer.close()
    note("closed", os.getpid())

consumer = PushConsumer(PushConsumerConfig(
    name_server="127.0.0.1:9876", group="probe-TOPIC", consume_from="CONSUME_FROM_FIRST_OFFSET"))
consumer.subscribe("TOPIC", listen)
consumer.start()
note("started", os.getpid())
"""
BESIDE = {  # where the page starts and closes its producer
    "producer.start()": "producer.start(); import probe",
    "producer.close()": "producer.close(); import probe; probe.close()",
}
QUEUE = """
app.conf.broker_transport_options = {
    "data_folder_in": "queue", "data_folder_out": "queue", "control_folder": "control"}
"""


@pytest.fixture(scope="module")
def name_server() -> Iterator[str]:
    """A broker that refuses nothing because the machine is busy."""
    with RestingCluster(brokers=1, broker_settings={"waitTimeMillsInSendQueue": "10000"}) as cluster:
        yield cluster.name_server


@pytest.fixture
def topic(name_server) -> str:
    topic = f"frameworks-{uuid.uuid4().hex[:12]}"
    with Admin(ClientConfig(name_server=name_server)) as admin:
        for name in (topic, f"{topic}-invalid"):
            admin.create_topic(name, read_queue_nums=4, write_queue_nums=4)
    return topic


@pytest.fixture
def write(name_server, topic, tmp_path) -> Callable[[str, str], Path]:
    """Write a file for this test's broker and topic."""

    def write(name: str, text: str) -> Path:
        here = {ADDRESS: name_server, '"Orders"': f'"{topic}"', '"OrdersInvalid"': f'"{topic}-invalid"'}
        for old, new in (here | {"TOPIC": topic}).items():
            text = text.replace(old, new)
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        return tmp_path

    return write


def _alone() -> list[tuple[str, str]]:
    """The files of the page that are not in a project of Django."""
    return [(name, text) for name, text in FILES.items() if "/" not in name and name != OF_DJANGO]


@pytest.fixture
def project(write, tmp_path) -> Path:
    """A project of Django with the files of the page."""
    for command in ("django-admin startproject project .", "python manage.py startapp shop"):
        program, *arguments = command.split()
        assert command.removeprefix("python ") in PAGE
        environ = environment(tmp_path)
        subprocess.run([framework_programs() / program, *arguments], cwd=tmp_path, env=environ, check=True)
    for name in (name for name in FILES if "/" in name or name == OF_DJANGO):
        write(name.removesuffix(" of Django"), FILES[name])
    with (tmp_path / "project" / "settings.py").open("a") as settings:
        settings.write('INSTALLED_APPS.append("shop")\n')
    return tmp_path


@pytest.fixture
def folder(write) -> Path:
    """The files of the page, with the probe beside them."""
    for name, text in _alone():
        for old, new in BESIDE.items():
            text = text.replace(old, new)
        if name == "tasks.py":
            text = text.replace("redis://127.0.0.1:6379/0", "filesystem://") + QUEUE
        write(name, text)
    for name in ("queue", "control"):
        (write("probe.py", PROBE) / name).mkdir()
    return write("probe.py", PROBE)


def noted(folder: Path, word: str) -> set[str]:
    """What the probes have noted with this word."""
    path = folder / "noted"
    lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    return {words[1] for words in lines if words[0] == word}


@contextmanager
def serving(folder: Path, command: str, log_name: str = "log") -> Iterator[subprocess.Popen[str]]:
    """A service that runs until SIGTERM; it ends in order, and with nothing left open."""
    program, *arguments = command.split()
    with (folder / log_name).open("w") as log:
        process = subprocess.Popen(
            [framework_programs() / program, *arguments],
            cwd=folder,
            env=environment(folder) | {"PYTHONPATH": f"{ROOT}:{folder}", "PYTHONWARNINGS": "default"},
            stdout=log,
            stderr=log,
            text=True,
            start_new_session=True,
        )
        try:
            yield process
            process.send_signal(signal.SIGTERM)
            process.wait(SECONDS)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its workers too
            process.wait()
    told = (folder / log_name).read_text()
    # uvicorn ends in order and then raises the signal that has ended it
    assert process.returncode == (-signal.SIGTERM if program == "uvicorn" else 0), told
    assert not re.search(r"Traceback|unclosed|never retrieved", told), told
    assert noted(folder, "closed") == noted(folder, "started")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answer(port: int) -> str:
    with urlopen(f"http://127.0.0.1:{port}/", timeout=SECONDS) as response:
        return str(response.read().decode())


def posted(port: int, body: bytes) -> int:
    """Return the status of the answer to an order."""
    headers = {"Content-Type": "application/json"}
    try:
        with urlopen(Request(f"http://127.0.0.1:{port}/orders", body, headers), timeout=SECONDS) as response:
            return int(response.status)
    except HTTPError as error:
        return error.code


def is_ready(port: int, path: str = "") -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/{path}", timeout=SECONDS) as response:
            return response.status == 200
    except OSError:  # it does not listen yet, or it answers 503
        return False


def booked(folder: Path, log: str) -> int:
    """Return how many orders a consumer has printed."""
    return (folder / log).read_text().count("booked")


def is_up(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("command", [each for each in COMMANDS if "service:" in each])
def test_gunicorn_serves_consumes_and_ends(command, folder):
    port = free_port()
    with serving(folder, f"{command} --bind 127.0.0.1:{port}"):
        wait_until(lambda: is_up(port), seconds=SECONDS)
        with ThreadPoolExecutor(10) as pool:
            assert set(pool.map(answer, [port] * COUNT)) == {"SEND_OK"}
        wait_until(lambda: len(noted(folder, "consumed")) == COUNT, seconds=SECONDS)


@pytest.mark.parametrize("command", [each for each in COMMANDS if each.startswith("celery")])
def test_celery_works_consumes_and_ends(command, folder):
    with serving(folder, command):
        ordering = f"from tasks import book\nfor n in range({COUNT}): book.delay(str(n))"
        subprocess.run(
            [framework_programs() / "python", "-c", ordering],
            cwd=folder,
            env=environment(folder),
            check=True,
            timeout=SECONDS,
        )
        wait_until(lambda: len(noted(folder, "consumed")) == COUNT, seconds=SECONDS)


@pytest.mark.parametrize("command", [*FASTAPI, " ".join(json.loads(IN_CONTAINER)[:2])])
def test_fastapi_sends_and_its_worker_consumes_and_puts_wrong_bodies_aside(
    command, folder, write, name_server, topic
):
    port, worker_port = free_port(), free_port()
    write("worker.py", FILES["worker.py"].replace("8001", str(worker_port)))
    where = f"--bind 127.0.0.1:{port}" if command.startswith("gunicorn") else f"--port {port}"
    with serving(folder, f"{command} {where}"), serving(folder, "python worker.py", "worker-log"):
        wait_until(lambda: is_ready(port, "ready") and is_ready(worker_port), seconds=SECONDS)
        order = b'{"id": "order-%d", "item": "apple"}'
        assert {posted(port, order % n) for n in range(COUNT)} == {202}
        assert posted(port, b'{"id": 7}') == 422
        with Producer(ProducerConfig(name_server=name_server)) as other:
            other.send(Message(topic, b'{"id": "order-7"}', keys=["order-7"]))
            other.send(Message(topic, b"no order"))
        wait_until(lambda: booked(folder, "worker-log") == COUNT, seconds=SECONDS)
        with Client(ClientConfig(name_server=name_server)) as client, Admin(client) as admin:
            refused = await_messages(client, admin, f"{topic}-invalid", 2, timeout=SECONDS)

    by_body = {message.body: message for message in refused}
    assert {body: message.keys for body, message in by_body.items()} == {
        b'{"id": "order-7"}': "order-7",
        b"no order": None,
    }
    assert by_body[b'{"id": "order-7"}'].properties["reason"] == "('item',): Field required"


def test_django_sends_and_its_command_consumes(project):
    (command,) = (each for each in COMMANDS if "project.wsgi" in each)
    port = free_port()
    serve = serving(project, f"{command} --bind 127.0.0.1:{port}")
    with serve, serving(project, "python manage.py consume", "consume-log"):
        wait_until(lambda: is_ready(port, "ready"), seconds=SECONDS)
        assert {posted(port, b'{"id": "order-%d"}' % n) for n in range(COUNT)} == {202}
        wait_until(lambda: booked(project, "consume-log") == COUNT, seconds=SECONDS)


def test_the_image_has_the_files_of_the_page_and_what_they_import():
    (recipe,) = re.findall(r"^```dockerfile\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (copied,) = re.findall(r"^COPY ((?:\w+\.py ?)+)\./$", recipe, re.MULTILINE)
    (installed,) = re.findall(r"^RUN pip install .*\.whl (.*)$", recipe, re.MULTILINE)

    assert set(copied.split()) <= FILES.keys()
    assert f"pip install {installed}\n" in PAGE
    assert 'python", "worker.py"' in PAGE


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_processes_of_multiprocessing_send(method, write):
    folder = write("crunch.py", FILES["crunch.py"].replace('"spawn"', f'"{method}"'))
    done = subprocess.run(
        [sys.executable, "-W", "error", "crunch.py"],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )

    assert (done.stdout, done.stderr) == ("1000\n", "")


def test_cells_run_in_a_kernel(write):
    cells = [FILES["a cell"], FILES["another cell"]]
    folder = write("cells.json", json.dumps(cells))
    program = """
import json, nbclient, nbformat
cells = [nbformat.v4.new_code_cell(text) for text in json.load(open("cells.json"))]
notebook = nbformat.v4.new_notebook(cells=cells)
nbclient.NotebookClient(notebook, kernel_name="python3", timeout=60).execute()
outputs = [output for cell in cells for output in cell["outputs"]]
print([output["text"] for output in outputs if output["name"] == "stdout"])
"""
    done = subprocess.run(
        [framework_programs() / "python", "-c", program],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=2 * SECONDS,
    )

    assert done.stdout == "['SEND_OK\\n', 'SEND_OK\\n']\n", done.stderr


@pytest.mark.parametrize("scene", PRINTED)
def test_greenlets_use_a_real_broker(scene, name_server, topic):
    assert run_scene(scene, {"name_server": name_server}, topic) == PRINTED[scene]


def test_greenlets_use_a_broker_that_accepts_nothing_but_tls():
    with RestingCluster(security=ClusterSecurity(client_certificates=True)) as cluster:
        settings = cluster.client_settings
        with Admin(ClientConfig(**settings)) as admin:
            for scene in PRINTED:
                admin.create_topic(scene, read_queue_nums=4, write_queue_nums=4)

        assert {scene: run_scene(scene, settings, scene) for scene in PRINTED} == PRINTED


def test_eventlet_itself_is_refused_by_name(write):
    program = """
import eventlet; eventlet.monkey_patch()
from rmqtools import Producer, ProducerConfig
Producer(ProducerConfig(name_server="127.0.0.1:9876")).start()
"""
    done = subprocess.run(
        [framework_programs() / "python", "-c", program],
        env=environment(write("none", "")),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )

    assert done.returncode == 1
    assert "ClientStateError: eventlet has patched this process" in done.stderr
