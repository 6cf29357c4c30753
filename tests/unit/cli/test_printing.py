"""Tables of all commands: nothing is cut, numbers are aligned, narrow terminals lose whole columns."""

import subprocess
import sys
from datetime import UTC, datetime

import pytest

from rmqtools.cli.moments import moment_text
from rmqtools.cli.printing import Column, cell_text, finding, plain, print_tables, table_lines, time_text
from rmqtools.group import FindingKind

COLUMNS = [Column("member"), Column("address", leaves=2), Column("lag"), Column("language", leaves=1)]
ROWS = [
    ("127.0.0.1@1234#567890123456789", "127.0.0.1:50000", 7, "JAVA"),
    ("[::1]@a", "[::1]:1", 12345, "PYTHON"),
]


def lines(width: int | None) -> list[str]:
    return [line.plain for line in table_lines(COLUMNS, ROWS, width)[0]]


def test_every_column_has_a_name_and_numbers_stand_on_the_right():
    assert lines(None) == [
        "MEMBER                          ADDRESS            LAG  LANGUAGE",
        "127.0.0.1@1234#567890123456789  127.0.0.1:50000      7  JAVA",
        "[::1]@a                         [::1]:1          12345  PYTHON",
    ]


@pytest.mark.parametrize(
    ("width", "left_out"),
    [(64, []), (63, ["address"]), (46, ["address", "language"]), (20, ["address", "language"])],
)
def test_a_narrow_terminal_loses_whole_columns_and_never_a_part_of_an_id(width, left_out):
    shown, missing = table_lines(COLUMNS, ROWS, width)

    assert missing == left_out
    assert shown[1].plain.startswith("127.0.0.1@1234#567890123456789  ")


def test_columns_without_room_are_named_once_for_several_tables_in_lines_that_fit(monkeypatch, capsys):
    monkeypatch.setattr("rmqtools.cli.printing.terminal_width", lambda: 46)

    print_tables(COLUMNS, {"first:": ROWS, "second:": ROWS})

    shown = capsys.readouterr()
    assert [line for line in shown.out.splitlines() if line.endswith(":")] == ["first:", "second:"]
    assert shown.err.splitlines() == [
        "not shown at 46 columns: address, language (a",
        "pipe and --json have them)",
    ]


def test_what_is_wrong_is_coloured():
    (_, line), _ = table_lines([Column("finding", style=finding)], [("queue_unowned",)], None)

    assert [str(span.style) for span in line.spans] == ["bold red"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        ([], "-"),
        (["a", "b"], "a, b"),
        (2.25, "2.2"),
        (True, "yes"),
        ("a\x1b[31mb\n", "a\\x1b[31mb\\n"),
        ("тема 主题", "тема 主题"),
    ],
)
def test_a_cell_is_one_line_whatever_the_value_is(value, text):
    assert cell_text(value) == text


def test_wide_characters_keep_their_column():
    shown, _ = table_lines([Column("topic"), Column("n")], [("主题", 1), ("ascii", 2)], None)

    assert [line.plain for line in shown] == ["TOPIC  N", "主题   1", "ascii  2"]


def test_values_become_json_with_enumerations_as_texts_and_sets_in_order():
    assert plain({FindingKind.NO_MEMBERS: {2, 1}, "kind": FindingKind.NO_MEMBERS}) == {
        "no_members": [1, 2],
        "kind": "no_members",
    }


def test_a_time_of_zero_is_never():
    shown = moment_text(datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC))

    assert (time_text(0), time_text(1_700_000_000_000)) == (None, shown)


@pytest.mark.process
@pytest.mark.parametrize(("body", "code"), [("pass", 0), ("raise Interrupted(2)", 130)])
def test_a_closed_pipe_and_ctrl_c_end_a_command_without_a_word(body, code):
    program = f"""
import sys, typer
from rmqtools.cli.printing import Interrupted, ends_quietly
app = typer.Typer()
@app.command()
def run():
    with ends_quietly():
        for number in range(100_000): print(number)
        {body}
app()
"""
    done = subprocess.run(
        f"{sys.executable} -c '{program}' | head -1" if code == 0 else [sys.executable, "-c", program],
        shell=code == 0,
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stderr, done.stdout[:2]) == (code, "", "0\n")
