"""docs/daily-tasks.md has every task of its script, with the command and what it printed."""

import re

import pytest

from tests.docs.daily_tasks import NONE, PAGE, TASKS, _anchor, written
from tests.support.mqadmin import Mqadmin

TEXT = PAGE.read_text()
SHOWN = dict(re.findall(r"^```text\n\$ (.*)\n((?:.*\n)*?)```$", TEXT, flags=re.MULTILINE))


def test_the_page_has_at_least_twenty_tasks_each_with_what_our_command_printed():
    assert len(TASKS) >= 25
    assert list(SHOWN) == [task.ours for task in TASKS if task.ours]
    assert all(output.strip() for output in SHOWN.values())
    assert not any("Traceback" in output or "error:" in output for output in SHOWN.values())


def test_the_page_is_what_the_script_writes():
    shown = {task: SHOWN[task.ours].removesuffix("\n") for task in TASKS if task.ours}

    assert written(shown) == TEXT


def test_every_row_leads_to_its_section():
    headings = {
        re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", line.lower())).strip("-")
        for line in re.findall(r"^## (.*)$", TEXT, flags=re.MULTILINE)
    }

    assert {_anchor(task) for task in TASKS if task.ours} == headings


@pytest.mark.slow
def test_mqadmin_has_every_command_and_option_that_the_page_names(java_peer):
    mqadmin = Mqadmin(java_peer, "127.0.0.1:9876")  # only its help is asked for
    named = [
        (command, re.findall(r"(?<!\S)-\w\b", options))
        for task in TASKS
        if task.mqadmin != NONE
        for command, options in re.findall(r"`(\w+)([^`]*)`", task.mqadmin)
    ]
    assert len(named) >= 20

    for command, options in named:
        shown = mqadmin.run(command, "-h")
        assert f"usage: mqadmin {command} " in shown
        for option in options:
            assert re.search(rf"^ {option},", shown, flags=re.MULTILINE), f"{command} {option}"
