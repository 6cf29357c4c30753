"""docs/daily-tasks.md has every task of its script, with the command and what it printed."""

import re

from tests.docs.daily_tasks import PAGE, TASKS, _anchor, written

TEXT = PAGE.read_text()
SHOWN = dict(re.findall(r"^```text\n\$ (.*)\n((?:.*\n)*?)```$", TEXT, flags=re.MULTILINE))


def test_the_page_has_at_least_twenty_tasks_each_with_what_our_command_printed():
    assert len(TASKS) >= 20
    assert list(SHOWN) == [task.ours for task in TASKS]
    assert all(output.strip() for output in SHOWN.values())
    assert not any("Traceback" in output or "error:" in output for output in SHOWN.values())


def test_the_page_is_what_the_script_writes():
    shown = {task: SHOWN[task.ours].removesuffix("\n") for task in TASKS}

    assert written(shown) == TEXT


def test_every_row_leads_to_its_section():
    headings = {
        re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", line.lower())).strip("-")
        for line in re.findall(r"^## (.*)$", TEXT, flags=re.MULTILINE)
    }

    assert {_anchor(task) for task in TASKS} == headings
