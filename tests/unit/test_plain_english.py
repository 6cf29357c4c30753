"""A net for prose: phrases that readers of other languages stumble over, and summary lines like questions.

The rule is in CONTRIBUTING.md: summary lines begin with a verb (functions) or a noun (classes, modules), and
programs do not tell, hear or want.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.sources import ROOT, files_of, tree_of

pytestmark = pytest.mark.process  # it reads all sources, for seconds

_CODE = ("rmqtools", "spark_connector", "tools", "examples")
_PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "rmqtools/DESIGN.md",
    "docs/*.md",
    "docs/decisions/*.md",
    "docs/reference/*.md",
)
_PHRASES = {
    r"hears|hire[ds]?|wants|tells|(is|are|was|were|been) told": "say report, log, return, need",
    r"without a word": "say silently, or what is not logged",
    r"goes before|go before": "say takes precedence, or precedes",
    r"gives? \w+ away": "say releases",
    r"what is left": "say remaining, or the rest",
    r"interpreter('s)? lock": "say GIL",
    r"what (became|has become) of": "say result, or outcome",
    r"to and fro": "say back and forth",
    r"of its own accord": "say by itself",
    r"have \w+ looked for": "say who does it",
}
_ANY_PHRASE = re.compile(rf"\b({'|'.join(_PHRASES)})\b", re.IGNORECASE)
_QUESTION = re.compile(r"(What|Who|Whom|Where|How|That|Whether|When|Why|Which)\b")
_QUOTED_QUESTION = re.compile(rf"""["']\s*{_QUESTION.pattern}""")
_PARTS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def prose_of(path: Path) -> Iterator[str]:
    """The comments and docstrings of a module, or a page without its programs and quoted words.

    Nothing of a file without one of the phrases.
    """
    text = path.read_text()
    if not _ANY_PHRASE.search(text):  # tokenizing takes longer than searching
        return
    if path.suffix == ".md":
        yield re.sub(r"```.*?```|`[^`\n]*`|\"[^\"\n]*\"", "", text, flags=re.DOTALL)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_docstring = token.type == tokenize.STRING and token.string.startswith(('"""', 'r"""'))
        if token.type == tokenize.COMMENT or is_docstring:
            yield re.sub(r"``.*?``", "", token.string, flags=re.DOTALL)


def found_in(prose: str) -> list[str]:
    if not _ANY_PHRASE.search(prose):
        return []
    return [
        f"{found.group()!r}: {remedy}"
        for phrase, remedy in _PHRASES.items()
        for found in re.finditer(rf"\b({phrase})\b", prose, flags=re.IGNORECASE)
    ]


@pytest.mark.parametrize("prose", ["a broker tells its members", "dropped without a word", "Nobody is told"])
def test_phrases_are_found(prose):
    assert found_in(f"# {prose}, at once")


def test_no_code_and_no_page_has_one_of_the_phrases():
    pages = sorted(page for pattern in _PAGES for page in ROOT.glob(pattern))
    assert len(pages) > 25
    wrong = [
        f"{path.relative_to(ROOT)}: {what}"
        for path in [*files_of(*_CODE), *pages]
        for prose in prose_of(path)
        for what in found_in(prose)
    ]
    assert not wrong, "\n".join(wrong)


def test_no_summary_line_begins_like_a_question():
    wrong = [
        f"{path.relative_to(ROOT)}, {getattr(part, 'name', 'module')}: {summary}"
        for path in files_of(*_CODE)
        if _QUOTED_QUESTION.search(path.read_text())  # parsing takes longer than searching
        for part in ast.walk(tree_of(path))
        if isinstance(part, _PARTS)
        and (docstring := ast.get_docstring(part))
        and _QUESTION.match(summary := docstring.split("\n")[0])
    ]
    assert not wrong, "\n".join(wrong)
