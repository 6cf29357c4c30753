"""The documentation as text: commands, extras, error texts, navigation. The blocks run in tests/docs."""

import ast
import builtins
import dataclasses
import inspect
import re
import subprocess
import sys
import tomllib
from functools import cache

import pytest

import rmqtools
from rmqtools import errors
from rmqtools.config import ProducerConfig, PullConsumerConfig, PushConsumerConfig
from rmqtools.model.codes import ResponseCode
from spark_connector.options.option_table import OPTIONS
from tests.docs.blocks import DOCS, ROOT, blocks_of, pages
from tools.reference_pages import reference_pages
from tools.site_pages import every_command, with_labels, with_security
from tools.sources import files_of, tree_of

pytestmark = pytest.mark.process  # seconds of work

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MAKE = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
INLINE = re.compile(r"`((?:rmqtools|make|seq 1000 \\\| rmqtools) [^`]*)`")


CONFIGS = (ProducerConfig, PullConsumerConfig, PushConsumerConfig)


@cache
def commands() -> dict[str, set[str]]:
    """Options by command."""
    return {
        path: {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        for path, command in every_command()
    }


def named_commands() -> list[tuple[str, str]]:
    """Every command that a page names, in its text or in a block."""
    inline = [(page, found) for page in pages() for found in INLINE.findall((DOCS / page).read_text())]
    blocks = [(page, line) for page in pages() for block in blocks_of(page) for line in block.commands]
    return [
        (page, part.strip())
        for page, text in [*inline, *blocks]
        for part in re.split(r"\s(?:\\?\||&&?)\s(?=rmqtools|sleep)|; |, ", text)
        if part.strip().startswith("rmqtools")
    ]


def wrong_in(text: str) -> str | None:
    """What is wrong with a command, if anything is."""
    words = text.split()
    known = [path for path in commands() if words[: len(path.split())] == path.split()]
    if not known:
        groups = {" ".join(path.split()[:depth]) for path in commands() for depth in (1, 2)}
        depth = max(depth for depth in (1, 2) if " ".join(words[:depth]) in groups)
        is_name = re.fullmatch(r"[a-z][a-z-]*", " ".join(words[depth : depth + 1]))
        return f"{text!r}: no such command. Correct it, by .venv/bin/rmqtools --help" if is_name else None
    options = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    unknown = {option for option in options if option not in commands()[known[0]] | {"--help"}}
    remedy = f"Correct it, by .venv/bin/{known[0]} --help"
    return f"{text!r}: unknown {sorted(unknown)}. {remedy}" if unknown else None


def test_every_command_that_a_page_names_exists_with_its_options():
    found = named_commands()

    assert len(found) > 40
    assert [f"{page}: {wrong}" for page, text in found if (wrong := wrong_in(text))] == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("rmqtools nowhere orders", "no such command"),
        ("rmqtools broker nowhere", "no such command"),
        ("rmqtools health --nowhere 2", r"unknown \['--nowhere'\]"),
        ("rmqtools broker", None),
        ("rmqtools --version", None),
        ("rmqtools group …", None),
        ("rmqtools topic list --idle 30d", None),
    ],
)
def test_a_command_that_does_not_exist_is_told_with_its_remedy(text, wrong):
    if wrong is None:
        assert wrong_in(text) is None
    else:
        assert re.search(f"{wrong}.* Correct it, by .venv/bin/rmqtools .*--help", wrong_in(text) or "")


@pytest.mark.parametrize(
    ("name", "text", "link"),
    [
        pytest.param("pin.md", 'ProducerConfig(name_server="h:9876")', "(secure.md)", id="a-page"),
        pytest.param("reference/spark.md", "`nameServer`", "(../secure.md)", id="in-a-folder"),
        pytest.param("pin.md", "name_server, see [secure](secure.md)", None, id="has-a-link"),
        pytest.param("glossary.md", "a broker", None, id="no-server"),
    ],
)
def test_a_page_that_names_a_server_links_to_secure_connections(name, text, link):
    page = with_security(text, name)

    assert page.startswith(text)
    assert (link in page) if link else page == text


def test_cells_of_a_wide_table_name_their_columns_and_narrow_ones_stay():
    row = "<tr>\n<td>send</td>\n<td align='left'>once</td>\n<td></td>\n<td>none</td>\n</tr>\n"
    heads = "<tr>\n" + "".join(f"<th>{head}</th>\n" for head in ("what", 'how "often"', "a", "b")) + "</tr>\n"
    labelled = with_labels(f"<table>\n<thead>\n{heads}</thead>\n<tbody>\n{row}{row}</tbody>\n</table>")
    narrow = "<table><tr><th>a</th></tr><tr><td>b</td></tr></table>"

    labels = re.findall(r'<td data-label="([^"]*)"', labelled)
    assert labels == ["what", "how &quot;often&quot;", "a", "b"] * 2
    assert labelled.startswith('<table data-wide="">')
    assert with_labels(narrow) == narrow


def names_of(block):
    """The names that a block binds, and those that it only reads."""
    nodes = [*ast.walk(ast.parse(block.text))]
    named = [node for node in nodes if isinstance(node, ast.Name)]
    bound = {node.id for node in named if not isinstance(node.ctx, ast.Load)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {
        node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    bound |= {node.name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name}
    bound |= {(node.asname or node.name).partition(".")[0] for node in nodes if isinstance(node, ast.alias)}
    return bound, {node.id for node in named} - bound


@pytest.mark.parametrize("page", pages())
def test_a_block_of_python_needs_nothing_but_the_blocks_above_it_and_imports_what_it_uses_of_us(page):
    known = set(dir(builtins))
    for block in (each for each in blocks_of(page) if each.language == "python"):
        bound, read = names_of(block)
        known |= bound

        assert read <= known, f"{page}:{block.line} uses {read - known}"
        assert not read & set(rmqtools.__all__), f"{page}:{block.line} does not import {read}"


def test_every_extra_that_a_page_installs_exists_and_the_start_page_lists_all():
    text = "\n".join((DOCS / page).read_text() for page in pages())
    named = {name for names in re.findall(r"""['"]\.\[([\w,]+)\]""", text) for name in names.split(",")}
    listed = set(re.findall(r"`\.\[(\w+)\]`", (DOCS / "index.md").read_text()))

    assert {"spark", "sql"} <= named <= PROJECT["optional-dependencies"].keys()
    assert listed == PROJECT["optional-dependencies"].keys() - {"dev"}


def test_every_target_of_make_that_a_page_names_exists():
    named = {name for page in pages() for name in re.findall(r"`make ([a-z-]+)", (DOCS / page).read_text())}

    assert sorted(named - MAKE) == [], "correct the page that names it: make has no such target"


def texts_of_the_code() -> str:
    """All texts in the sources, with … for what is filled in, in one string."""
    trees = [tree_of(path) for path in files_of("rmqtools")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    formatted = [
        "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        for node in nodes
        if isinstance(node, ast.JoinedStr)
    ]
    plain = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return "\n".join([*formatted, *plain])


def test_every_error_text_of_the_troubleshooting_page_exists():
    page = (DOCS / "troubleshooting.md").read_text().partition("## Log events")[0]
    code = texts_of_the_code()
    texts = re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)

    assert len(texts) > 35
    assert [text for text in texts if text not in code] == [], "correct these rows of docs/troubleshooting.md"


def test_the_codes_of_the_troubleshooting_page_are_the_servers():
    found = re.findall(r"^\| (\d+) (\w+) \|", (DOCS / "troubleshooting.md").read_text(), re.MULTILINE)

    assert len(found) > 5
    assert [(int(code), name) for code, name in found if ResponseCode[name] != int(code)] == []


def test_the_settings_that_the_page_on_tuning_names_exist():
    fields = {each.name for kind in CONFIGS for each in dataclasses.fields(kind)}
    known = fields | {each.name for each in OPTIONS} | {"send", "send_many", "send_batches"}
    cells = [row.split("|")[2] for row in (DOCS / "tune.md").read_text().splitlines() if row.startswith("|")]
    named = {name for cell in cells for name in re.findall(r"`([a-zA-Z_]+)(?:=[^`]*)?`", cell)}

    assert len(named) > 15
    assert sorted(named - known) == [], "correct docs/tune.md: neither a setting nor an option has this name"


def test_every_error_class_leads_to_its_section_of_the_troubleshooting_page():
    assert "docs/troubleshooting.md" in (inspect.getdoc(errors) or "")


@pytest.mark.slow  # links, errors and commands of the pages are checked above in every run
def test_the_site_is_built_without_a_warning(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={"NO_MKDOCS_2_WARNING": "1", "PATH": "/usr/bin:/bin"},
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    for page, content in reference_pages().items():
        shown = (tmp_path / page.replace(".md", ".html")).read_text()
        named = re.findall(r"^::: (\S+)$", content, re.MULTILINE)
        assert [place for place in named if f'id="{place}"' not in shown] == []
    assert "<code>seq 1000 | rmqtools produce" in (tmp_path / "commands.html").read_text()
    assert "assets/site.css" in (tmp_path / "index.html").read_text()
    assert re.search(r'((href|src)=|"base": )"/', (tmp_path / "404.html").read_text()) is None
    for address in re.findall(r'(?:src|href)="(https?://[^"]+)"', (tmp_path / "index.html").read_text()):
        assert "squidfunk" in address or "mkdocs" in address, address  # nothing is fetched from elsewhere
