"""Every public thing is on its page, and every change of the surface is in the changelog."""

import pytest

from tools import surface
from tools.site_pages import every_command
from tools.sources import ROOT
from tools.surface import KINDS, handwritten, invented, missing, released, unannounced, untested, unused

pytestmark = pytest.mark.process  # it reads all sources, for seconds

CHANGELOG = """# Changelog

## Unreleased

### Added

- The setting `ProducerConfig.pace` bounds sends; `group check` takes
  `--min-age`.
- `Producer.send` takes `pace`.

## 0.1.0

- `Producer.old`
"""


def refuse(wrong: list[str]) -> None:
    """Fail with lines that each say what to do."""
    if wrong:
        again = ".venv/bin/python -m tools.surface  # prints these lines again"
        pytest.fail("\n".join([*wrong, again]), pytrace=False)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_public_thing_is_on_its_page(kind):
    assert len(kind.found()) > 5
    refuse(missing(kind))


@pytest.mark.parametrize("kind", [each for each in KINDS if each.is_exact], ids=lambda kind: kind.name)
def test_a_page_names_nothing_that_does_not_exist(kind):
    refuse(invented(kind))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_public_thing_is_in_a_test(kind):
    unknown = "un" + "heard"  # in two words: this file is a test, too
    nowhere = f"rmqtools.{unknown}" if kind.name == "command-option" else unknown
    refuse(untested(kind))
    if kind.name not in ("name", "event"):
        names = {nowhere: unknown}
        if kind.name == "command":
            apart = f"undrain {'dlq'}"  # tests have both words, never in a row
            names[f"rmqtools {apart}"] = apart
        assert untested(kind._replace(found=lambda: dict.fromkeys(names, ""))) == [
            f"{kind.name} {name} is in no test. Write one that has: {words}"
            for name, words in sorted(names.items())
        ]


def test_every_argument_of_a_command_has_a_text():
    arguments = [(path, each) for path, command in every_command() for each in command.params]
    refuse(
        [
            f"argument {each.name} of {path} has no text. Add help=… in rmqtools/cli"
            for path, each in arguments
            if each.param_type_name == "argument" and not getattr(each, "help", None)
        ]
    )
    assert len(arguments) > 100


def test_every_setting_is_used():
    refuse(unused(next(kind for kind in KINDS if kind.name == "setting").found()))
    assert unused(["ProducerConfig.nowhere"]) == [
        "setting ProducerConfig.nowhere is never used. Use it in rmqtools/engine, or remove the field"
    ]


def test_every_change_of_the_public_surface_is_in_the_changelog():
    refuse(unannounced((ROOT / "CHANGELOG.md").read_text(), released(), surface.surface()))


def test_the_released_surface_is_as_the_release_wrote_it():
    text = surface.RELEASED.read_text()
    refuse(handwritten(text))

    (wrong,) = handwritten(text + "setting ProducerConfig.pace = 1\n")
    assert "changed by hand" in wrong
    assert "run git checkout tools/released_surface.txt" in wrong


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_thing_without_a_page_is_found_with_the_place_where_it_belongs(kind):
    name = "rmqtools.Nowhere" if kind.name == "name" else "nowhere"
    wrong = {*missing(kind._replace(found=lambda: kind.found() | {name: ""}))} - {*missing(kind)}

    assert len(wrong) == 1
    assert f"{kind.name} {name} is not on its page. Add to {kind.page}: " in wrong.pop()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_name_on_an_exact_page_without_a_thing_is_found(kind):
    wrong = {*invented(kind._replace(shown=lambda: kind.shown() | {"nowhere"}))} - {*invented(kind)}

    assert [line.startswith(f"{kind.name} nowhere does not exist.") for line in wrong] == [
        True
    ] * kind.is_exact


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        pytest.param({}, {"setting ProducerConfig.pace": " = 1"}, None, id="a-new-setting-with-a-line"),
        pytest.param({}, {"setting ProducerConfig.burst": " = 1"}, "burst", id="a-new-setting"),
        pytest.param(
            {}, {"command-option rmqtools group check --min-age": ""}, None, id="an-option-with-a-line"
        ),
        pytest.param(
            {}, {"command-option rmqtools topic list --min-age": ""}, "topic list --min-age", id="another"
        ),
        pytest.param(
            {"method Producer.send": "(message)"},
            {"method Producer.send": "(message, pace)"},
            None,
            id="a-parameter",
        ),
        pytest.param(
            {"method Producer.send": "(message)"},
            {"method Producer.send": "(message, rate)"},
            "send rate",
            id="changed",
        ),
        pytest.param({"method Producer.old": "()"}, {}, "old", id="removed-and-only-an-old-section-names-it"),
        pytest.param({"event a_b": ""}, {"event a_b": ""}, None, id="unchanged"),
        pytest.param({"event a_b": " = info"}, {"event a_b": " = error"}, "a_b", id="another-level"),
        pytest.param({}, {"exit-code 0": " = NOTHING"}, "exit code 0", id="a-number-of-another-line"),
        pytest.param(
            {},
            {"command rmqtools dlq count": "", "command-option rmqtools dlq count --utc": ""},
            "dlq count",
            id="a-new-command",
        ),
        pytest.param({}, {"command rmqtools check group": ""}, "check group", id="words-of-another-line"),
    ],
)
def test_a_change_of_the_surface_needs_a_line_that_names_it(before, now, words):
    wrong = unannounced(CHANGELOG, before, now)

    assert [line.rpartition("has: ")[2] for line in wrong] == ([] if words is None else [words])


@pytest.mark.parametrize(
    ("thing", "more"),
    [
        ("setting ProducerConfig.send_timeout", " = 3.0 (float)"),
        ("method Producer.send", "(message, queue, selector, arg, timeout)"),
        ("command rmqtools health", ""),
        ("command-option rmqtools group check --repair", " = False"),
        ("option stamp", " = false (true or false)"),
        ("column queueOffset", " = INT64"),
        ("finding lag_large", " = ERROR"),
        ("event topic_not_found", " = warning"),
        ("error ConfigError", "(RocketMQError, ValueError)"),
        ("exit-code 3", " = INCOMPLETE"),
    ],
)
def test_a_thing_of_the_surface_has_what_else_users_would_see_change(thing, more):
    assert surface.surface()[thing] == more
    assert thing in released()
