"""The compiled module serves the main interpreter, with the classes loaded first; others run in Python.

Each test is a program of its own: it loads modules twice, which would disturb other tests.
"""

import os
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        os.environ.get("RMQTOOLS_PURE_PYTHON") == "1", reason="the twins were left out on purpose"
    ),
]

OTHER_INTERPRETER = "only the main interpreter of a process has it"
LOADED_BEFORE = "this process has loaded it before, and loads it once"

INTERPRETERS = """
try:
    import _interpreters
except ImportError:  # before CPython 3.13
    import _xxsubinterpreters as _interpreters
    second = _interpreters.create(isolated=False)
else:
    second = _interpreters.create("legacy")  # as mod_wsgi, uWSGI and jep make them

def run_in_second(code):
    failed = _interpreters.run_string(second, code)  # before 3.13 it raises
    assert failed is None, failed
"""

USE = """
from rmqtools.engine.producer.send_answer import Placed
from rmqtools.model.message import Message, MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import SendResult, SendStatus
from rmqtools.protocol.headers.send import SendMessageResponseHeader
from rmqtools.protocol.messages import stored
from rmqtools.protocol.wire.command import RemotingCommand, decode_command
from rmqtools.protocol.wire.framing import Frame

hosts = "127.0.0.1:1234", 2, "127.0.0.1:10911"
data = stored.encode_message(MessageExt("topic", 3, 77, 1000, b"body", {"TAGS": "a"}, 5, 0, 1, *hosts))
answer = SendMessageResponseHeader(
    msg_id="7F00", queue_id=1, queue_offset=2, transaction_id=None, recall_handle=None
)

def use():
    assert Message("t", b"x", priority=3).priority == 3
    (decoded,) = stored.decode_messages(data)
    assert isinstance(decoded, MessageExt), type(decoded)
    assert (decoded.queue_id, decoded.tags) == (3, "a")
    command = decode_command(Frame(0, b'{"code":0,"opaque":5}', b"body"))
    assert isinstance(command, RemotingCommand) and command.opaque == 5
    placed = Placed(SendStatus.SEND_OK, MessageQueue("t", "b", 1), answer, ["ID"], None, True)
    (result,) = placed.results([])
    assert isinstance(result, SendResult) and result.queue_offset == 2

use()
"""


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_first_interpreter_keeps_its_classes_after_a_second_one_has_loaded_rmqtools():
    code = f"{INTERPRETERS}{USE}\nrun_in_second({USE!r})\nuse()\nrun_in_second('use()')\n"

    run(code + "from rmqtools.compiled import twins\nassert twins is not None")


def test_a_second_interpreter_that_is_first_leaves_the_twins_to_the_main_one():
    refused = "from rmqtools.compiled import twins; assert twins is None"

    run(f"{INTERPRETERS}\nrun_in_second({refused!r})\n{USE}\nassert stored.twins is not None\n")


def test_a_second_interpreter_runs_in_python_and_says_why():
    asked = "from rmqtools.compiled import twins, why_pure; print(twins, why_pure, sep=': ', flush=True)"

    assert run(f"{INTERPRETERS}\nrun_in_second({asked!r})") == f"None: {OTHER_INTERPRETER}\n"


@pytest.mark.parametrize(
    "modules",
    [
        pytest.param("model.message protocol.messages.stored_head protocol.messages.stored", id="messages"),
        pytest.param("protocol.wire.command", id="commands"),
        pytest.param("model.result engine.producer.send_answer", id="results"),
    ],
)
def test_what_is_loaded_again_makes_objects_of_its_new_classes(modules):
    names = [f"rmqtools.{module}" for module in modules.split()]

    run(f"{USE}\nimport sys, importlib\nfor name in {names}: importlib.reload(sys.modules[name])\n{USE}")


def test_rmqtools_loaded_a_second_time_runs_in_python_beside_the_first():
    forget = "for name in [*sys.modules]:\n    if name.startswith('rmqtools'): del sys.modules[name]\n"
    both = f"import sys\nfirst, second = {{}}, {{}}\nexec({USE!r}, first)\n{forget}exec({USE!r}, second)\n"
    asked = "from rmqtools.compiled import twins, why_pure\nprint(twins, why_pure, sep=': ')\n"

    assert run(f"{both}first['use']()\nsecond['use']()\n{asked}") == f"None: {LOADED_BEFORE}\n"
