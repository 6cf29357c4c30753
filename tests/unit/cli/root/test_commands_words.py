"""Options and exit codes of all commands: each word has one meaning, that of docs/commands.md."""

import ast
import re

import pytest
import typer

from rmqtools.cli.exit_code import ExitCode, exit_code_of
from rmqtools.cli.root.every_command import OLD_SPELLINGS
from rmqtools.errors import ConfigError, RemotingTimeoutError, RocketMQError
from tools.site_pages import every_command
from tools.sources import ROOT, files_of, tree_of

PAGE = (ROOT / "docs" / "commands.md").read_text()
COMMANDS = {path.removeprefix("rmqtools "): command for path, command in every_command()}
OPTIONS = [
    (path, option)
    for path, command in COMMANDS.items()
    for option in command.params
    if option.param_type_name == "option" and option.name != "help"
]
CONTEXT = typer.Context(COMMANDS["health"])
CHANGES = ("alter", "clear", "config", "delete", "drain", "groups", "reset", "set", "skip", "undrain")


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table with this heading, without the line below it."""
    table = PAGE.partition(f"\n| {heading} |")[2].partition("\n\n")[0]
    return [re.split(r"(?<!\\)\|", line.strip("|")) for line in table.splitlines()[2:]]


def long_of(option) -> str:
    return max(option.opts, key=len)


def form(option) -> str:
    """Return what an option takes, as its help writes it."""
    if option.is_flag:
        return "flag"
    return option.metavar or re.sub(r"<(\w+\|)+\w+>", "choices", option.display_type(CONTEXT))


def words(metavar: str) -> set[str]:
    return set(re.findall(r"NAME=VALUE|[A-Z]+(?::[A-Z]+)?", re.sub(r"[\[\]]", "", metavar)))


def short_options() -> dict[str, str]:
    """Return the short option of each long one, as the page has them."""
    return {long.strip(" `"): short.strip(" `") for short, long, _ in rows("short")}


def test_a_short_option_means_the_same_everywhere():
    found = {(long_of(option), short) for _, option in OPTIONS for short in option.opts if short[1] != "-"}

    assert found == set(short_options().items())


def test_an_option_has_its_short_form_in_every_command():
    short = short_options()

    assert [
        f"{path} {long_of(option)}"
        for path, option in OPTIONS
        if long_of(option) in short and short[long_of(option)] not in option.opts
    ] == []


def test_a_long_option_takes_the_same_everywhere():
    forms: dict[str, dict[str, list[str]]] = {}
    for path, option in OPTIONS:
        forms.setdefault(long_of(option), {}).setdefault(form(option), []).append(path)
    largest = {name: max(found, key=len) for name, found in forms.items()}

    assert {
        name: found
        for name, found in forms.items()
        if any(not set(one.split("|")) <= set(largest[name].split("|")) for one in found)
    } == {}


def test_the_page_explains_every_value_and_no_other():
    taken = {word for _, option in OPTIONS for word in words(option.metavar or "")}

    assert taken == {word for row in rows("value") for word in re.findall(r"`([A-Z:=]+)`", row[0])}


def test_options_without_such_a_value_take_whole_numbers_or_choices():
    others = {form(option) for _, option in OPTIONS if option.metavar is None}

    assert others == {"flag", "choices", "<int range>"}


@pytest.mark.parametrize(("path", "option"), [each for each in OPTIONS if form(each[1]) == "DURATION"])
def test_a_duration_is_written_alike_everywhere(path, option):
    assert [option.process_value(CONTEXT, text) for text in ("2h", "90s", "90", "1.5h")] == [
        7200,
        90,
        90,
        5400,
    ]
    with pytest.raises(typer.BadParameter, match="'soon' is no duration"):
        option.process_value(CONTEXT, "soon")


def test_a_command_that_changes_something_takes_yes_and_dry_run():
    both = {
        path: {long_of(option) for owner, option in OPTIONS if owner == path} & {"--yes", "--dry-run"}
        for path in COMMANDS
    }

    assert {path: given for path, given in both.items() if len(given) == 1} == {}
    assert {path for path in COMMANDS if path.split()[-1] in CHANGES} <= {path for path in both if both[path]}


@pytest.mark.parametrize(
    ("path", "old", "new"), [(path, *pair) for path, pairs in OLD_SPELLINGS.items() for pair in pairs.items()]
)
def test_old_spellings_are_accepted_and_not_shown(path, old, new):
    command = COMMANDS[path]
    (option,) = [one for one in command.params if new in one.opts]
    given, _, _ = command.make_parser(CONTEXT).parse_args([old, "1"])

    assert given[option.name] in ("1", ["1"])
    assert old not in option.opts


def test_the_page_has_the_exit_codes_with_their_meanings():
    shown = [[cell.strip() for cell in row[:2]] for row in rows("code")]

    wanted = [[str(code.value), code.meaning] for code in ExitCode]
    assert shown[:-1] == wanted, "correct the table of exit codes in docs/commands.md, or cli/exit_code.py"
    assert shown[-1][0] == "130, 143"


def test_commands_end_with_the_exit_codes_of_the_table():
    exits = [
        (path.name, ast.unparse(argument))
        for path in files_of("rmqtools")
        if path.is_relative_to(ROOT / "rmqtools" / "cli")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("typer.Exit", "sys.exit", "SystemExit")
        for argument in node.args
    ]
    named = re.compile(r"(ExitCode\.\w+( if .+ else ExitCode\.\w+)?|.+\.exit_code|_fail\(.+\))")

    assert len(exits) > 10
    assert [each for each in exits if not named.fullmatch(each[1])] == []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("no such option"), ExitCode.USAGE),
        (RemotingTimeoutError("silent"), ExitCode.INCOMPLETE),
        (RocketMQError("no such group"), ExitCode.NO),
    ],
)
def test_the_exit_code_of_an_error_says_whether_to_correct_to_wait_or_to_look(error, code):
    assert exit_code_of(error) is code


def test_a_number_in_a_help_text_is_an_exit_code_of_the_table():
    texts = {
        path: re.sub(r"\s+", " ", command.help).partition("xit code ")[2].partition(". ")[0]
        for path, command in COMMANDS.items()
    }
    found = {path: set(re.findall(r"(?:^|; )(\d+)[:\s]", text)) for path, text in texts.items()}

    assert {
        path: codes for path, codes in found.items() if codes - {str(code.value) for code in ExitCode}
    } == {}
    assert any(found.values())
