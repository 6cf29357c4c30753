import re

import pytest

from tools.run_workflow import ROOT, Step, WorkflowError, main, read_jobs, read_steps, run_steps

pytestmark = pytest.mark.process  # it starts shells

WORKFLOW = """
jobs:
  build:
    steps:
      - uses: actions/checkout@v4
      - run: echo one >> ran
      - run: |
          false
          echo two >> ran
      - run: echo three >> ran
  named:
    steps:
      - name: say it
        run: echo "$WORD" >> ran
        env:
          WORD: four
  late:
    steps:
      - run: echo ${{ matrix.os }}
"""
ENV = {"PATH": "/usr/bin:/bin"}
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
JOBS = [(file, job) for file in FILES for job in read_jobs(file.read_text())]


def test_commands_run_in_their_order_until_one_fails(tmp_path):
    assert run_steps(read_steps(WORKFLOW, "build"), tmp_path, ENV) == 1

    assert (tmp_path / "ran").read_text() == "one\n"


def test_a_step_gets_its_environment(tmp_path):
    assert run_steps(read_steps(WORKFLOW, "named"), tmp_path, ENV) == 0

    assert (tmp_path / "ran").read_text() == "four\n"


def test_actions_and_packages_of_the_image_are_skipped(tmp_path, capfd):
    steps = [*read_steps(WORKFLOW, "build")[:1], Step("image", "apt-get install -y git")]

    assert run_steps(steps, tmp_path, ENV) == 0
    assert capfd.readouterr().out == "skipped: actions/checkout@v4\nskipped: image\n"


@pytest.mark.parametrize(
    ("job", "text"),
    [("deploy", "no job 'deploy': want one of build, named, late"), ("late", r"expression 'matrix\.os'")],
)
def test_what_cannot_run_here_is_refused_by_name(job, text):
    with pytest.raises(WorkflowError, match=text):
        read_steps(WORKFLOW, job)


def test_an_unknown_workflow_ends_with_2(capsys):
    assert main(["weekly", "lint"]) == 2
    assert capsys.readouterr().err == "not run: no workflow 'weekly': want one of ci, nightly, release\n"


@pytest.mark.parametrize(("file", "job"), JOBS, ids=[f"{file.stem}-{job}" for file, job in JOBS])
def test_the_commands_of_each_job_can_be_read_and_their_targets_exist(file, job):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    steps = read_steps(file.read_text(), job)

    assert steps
    for step in steps:
        if step.command and step.command.startswith("make "):
            assert {word for word in step.command.split()[1:] if "=" not in word} <= targets
