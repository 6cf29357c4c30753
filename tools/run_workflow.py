"""Runs the commands of a workflow's job on this machine: ``python -m tools.run_workflow ci lint``.

The commands are those of the file in ``.github/workflows``, in a fresh clone of this checkout, with an empty
home and a new virtual environment as ``python``. Steps that use an action are skipped, and printed.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
_AT_ROOT = "apt-get "  # what an image lacks; this machine has it, or its targets install it


class WorkflowError(Exception):
    """The workflow cannot run here; the text has reason and remedy."""


@dataclass(frozen=True)
class Step:
    """One step of a job: ``command`` for the shell, or None with the action's name."""

    name: str
    command: str | None
    env: Mapping[str, str] = field(default_factory=dict)


def read_jobs(text: str) -> dict[str, Any]:
    """Return the jobs of a workflow by their names."""
    jobs: dict[str, Any] = yaml.safe_load(text)["jobs"]
    return jobs


def read_steps(text: str, job: str) -> list[Step]:
    """Return the steps of a job.

    Raises:
        WorkflowError: there is no such job, or a command has an expression of the service.
    """
    jobs = read_jobs(text)
    if job not in jobs:
        raise WorkflowError(f"no job {job!r}: want one of {', '.join(jobs)}")
    steps = [_step(each) for each in jobs[job]["steps"]]
    for step in steps:
        if step.command and (found := _EXPRESSION.search(step.command)):
            raise WorkflowError(f"job {job!r} has the expression {found[1]!r} in a command: put it into env")
    return steps


def _step(given: Mapping[str, Any]) -> Step:
    command = given.get("run")
    name = str(given.get("name") or given.get("uses") or command)
    return Step(name, command, {key: str(value) for key, value in given.get("env", {}).items()})


def run_steps(steps: Sequence[Step], folder: Path, env: Mapping[str, str]) -> int:
    """Run the commands one after the other, as the service does; return the first exit code that is not 0."""
    for step in steps:
        if step.command is None or step.command.startswith(_AT_ROOT):
            print(f"skipped: {step.name}", flush=True)
            continue
        print(f"run: {step.command}", flush=True)
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step.command],
            cwd=folder,
            env={**env, **step.env},
        )
        if done.returncode != 0:
            print(f"ended with {done.returncode}: {step.command}", file=sys.stderr)
            return done.returncode
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a job; return the exit code of its first command that fails."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.run_workflow", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("workflow", help="a file's name in .github/workflows, without .yml")
    parser.add_argument("job")
    given = parser.parse_args(arguments)
    file = ROOT / ".github" / "workflows" / f"{given.workflow}.yml"
    try:
        if not file.is_file():
            raise WorkflowError(f"no workflow {given.workflow!r}: want one of {_workflows()}")
        steps = read_steps(file.read_text(), given.job)
    except WorkflowError as error:
        print(f"not run: {error}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="rmqtools-workflow-") as scratch:
        checkout, home, python = (Path(scratch, name) for name in ("checkout", "home", "python"))
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(checkout)], check=True)
        home.mkdir()
        venv.create(python, with_pip=True)
        path = os.pathsep.join((str(python / "bin"), os.environ["PATH"]))
        print(f"job {shlex.quote(given.job)} in a fresh clone", flush=True)
        return run_steps(steps, checkout, {"PATH": path, "HOME": str(home), "CI": "true"})


def _workflows() -> str:
    return ", ".join(sorted(path.stem for path in (ROOT / ".github" / "workflows").glob("*.yml")))


if __name__ == "__main__":
    sys.exit(main())
