"""Runs the scenes of ``tests.support.greenlets``, each in a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Final

from tests.support.docker_project import CHECKOUT
from tests.support.patience import PROGRAM_PATIENCE

PRINTED: Final = {
    "send": "sent 200 lent 0 others ran True\n",
    "consume": "pushed 1000\n",
    "poll": "polled 1000\n",
    "limit": "limited True\n",
    "beside": "loop: no running event loop\n",
    "fork": "forked 200 repeated 0 child 7\n",
    "wake": "child 7\n",
    "stop": "closed True True\n",
    "busy": "while busy in flight 10 repeated 0\n",
}
_EXIT_CODES: Final = {"stop": 5}


def run_scene(scene: str, settings: Mapping[str, Any], topic: str) -> str:
    """Run a scene with these settings of its clients; return what it has printed, errors first."""
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "default",
            "-m",
            "tests.support.greenlets",
            scene,
            json.dumps(settings),
            topic,
        ],
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=PROGRAM_PATIENCE,
    )
    code = "" if done.returncode == _EXIT_CODES.get(scene, 0) else f"exit code {done.returncode}\n"
    return done.stderr + code + done.stdout
