"""The table of docs/compatibility.md: what each version of the servers does.

``outcomes.json`` has the outcome of each feature on each version as the last run saw it: ``passes``, or the
words of the refusal. The page shows the same; a unit test compares the two.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from tests.support.compatibility_page import Part, row

STORE = Path(__file__).with_name("outcomes.json")
PART = Part(
    "<!-- versions: written by RMQTOOLS_WRITE_VERSIONS=1 make test-long -->",
    "<!-- end of versions -->",
)
PASSES, FAILS = "passes", "fails"

Outcomes = Mapping[str, Mapping[str, str]]  # by version, then by feature


def load() -> dict[str, dict[str, str]]:
    """The outcomes of the last runs."""
    outcomes: dict[str, dict[str, str]] = json.loads(STORE.read_text())
    return outcomes


def store(outcomes: Outcomes) -> None:
    """Keep the outcomes, and show them on the page."""
    STORE.write_text(json.dumps(dict(sorted(outcomes.items())), indent=1) + "\n")
    PART.write(render(outcomes))


def refusal(error: Exception) -> str:
    """The words of an error, without what differs from run to run."""
    text = str(error).splitlines()[0]
    for pattern, kind in (
        (r"\d+(\.\d+){3}:\d+", "HOST:PORT"),
        (r"(topic|group)-[0-9a-f]{12}", r"\1"),
        (r"after \d+\.\d+ s", "after a while"),
        (r"broker-a\[\d+\]", "broker-a"),
    ):
        text = re.sub(pattern, kind, text)
    return f"{type(error).__name__}: {text}"


def render(outcomes: Outcomes) -> str:
    """The table, and under it the words of each refusal, numbered."""
    versions, notes = sorted(outcomes), list[str]()
    features = dict.fromkeys(feature for version in versions for feature in outcomes[version])
    lines = [row("", *versions), row("---", *("---" for _ in versions))]
    lines += [
        row(feature, *(_cell(outcomes[version].get(feature, FAILS), notes) for version in versions))
        for feature in features
    ]
    numbered = [f"{number}. `{words.replace('`', chr(39))}`" for number, words in enumerate(notes, 1)]
    return "\n".join([*lines, *(["", "Refused with these words:", "", *numbered] if notes else [])])


def _cell(outcome: str, notes: list[str]) -> str:
    if outcome in (PASSES, FAILS):
        return outcome
    if outcome not in notes:
        notes.append(outcome)
    return f"refused ({notes.index(outcome) + 1})"
