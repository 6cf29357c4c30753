"""A virtual environment with the frameworks of docs/frameworks.md, made once in ``.build`` and used again."""

import subprocess
import sys
import sysconfig
import tomllib
import venv
from hashlib import sha256
from pathlib import Path
from typing import Final

from tests.support.docker_project import CHECKOUT

_SECONDS: Final = 600.0


def framework_programs() -> Path:
    """The folder of ``python``, ``gunicorn`` and ``celery``. All else is the environment of the tests."""
    groups = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["dependency-groups"]
    wanted = groups["frameworks"]
    mark = sha256(" ".join([sys.version, *wanted]).encode()).hexdigest()[:12]
    folder = CHECKOUT / ".build" / "frameworks" / mark
    done = folder / "done"
    if not done.exists():
        venv.create(folder, clear=True, with_pip=True)
        (site,) = folder.glob("lib/python*/site-packages")
        (site / "tests.pth").write_text(f"{sysconfig.get_path('purelib')}\n{CHECKOUT}\n")
        install = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--ignore-installed"]
        subprocess.run([*install, *wanted], check=True, timeout=_SECONDS)
        done.touch()
    return folder / "bin"
