"""A hook of mkdocs: pages made from other files of the project and from its code, and links between them.

Files outside ``docs`` become pages (:data:`PAGES`), so links to them lead there. Links to files that are no
page become plain text. The reference is made by :mod:`tools.reference_pages`, ``reference/commands.md`` from
the commands themselves, ``reference/strategy-names.md`` from the table of strategies, and
``background/files.md`` from the modules.
"""

import posixpath
import re
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from rmqtools.cli.root.commands import COMMANDS
from rmqtools.cli.root.lazy_group import load
from rmqtools.policy.allocate.strategy_table import BUILT_IN
from spark_connector.options.option_table import describe_options
from tools.file_map import file_map_page
from tools.reference_pages import reference_pages

ROOT: Final = Path(__file__).resolve().parents[1]
PAGES: Final = {  # file of the project -> page of the site
    "rmqtools/DESIGN.md": "background/design.md",
    "examples/README.md": "background/examples.md",
    "CHANGELOG.md": "background/changelog.md",
    "CONTRIBUTING.md": "background/contributing.md",
    "SECURITY.md": "background/security.md",
    "CODE_OF_CONDUCT.md": "background/conduct.md",
    "spark_connector/OPTIONS.md": "reference/spark-options.md",
}
_NAMES_A_SERVER: Final = re.compile(r"name_server|nameServer|--name-server|NAMESRV_ADDR")
_SECURE: Final = "secure.md"
_ROLE: Final = re.compile(r":(?:class|meth|mod|func|attr|data|exc):(?=<code>)")
_TABLE: Final = re.compile(r"<table>.*?</table>", re.DOTALL)
_HEAD: Final = re.compile(r"<th(?:\s[^>]*)?>(.*?)</th>", re.DOTALL)
_CELL: Final = re.compile(r"<td((?:\s[^>]*)?)>")
_TAG: Final = re.compile(r"<[^>]*>")
_ROOT_LINK: Final = re.compile(r'(\s(?:href|src)=")/(?!/)')
_WIDE: Final = 4  # columns, from which on a table does not fit on a phone
_TABLE_ROW: Final = re.compile(r"^\|.*$", re.MULTILINE)
_CODE: Final = re.compile(r"`[^`\n]+`")
_LINK: Final = re.compile(r"\[([^\]]*)\]\(([^)#\s:]+)(#[^)]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not files of ``docs``."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    files.get_file_from_path("reference/spark-options.md").content_string = describe_options()  # type: ignore[union-attr]
    for page, content in reference_pages().items():
        files.append(File.generated(config, page, content=content))
    files.append(File.generated(config, "reference/commands.md", content=describe_commands()))
    files.append(File.generated(config, "reference/strategy-names.md", content=describe_strategies()))
    files.append(File.generated(config, "background/files.md", content=file_map_page()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace links to files of the project by links to their pages, or by text if a file has none.

    A page that names a server links to the page on secure connections.
    """
    name = page.file.src_uri
    markdown = with_security(markdown, name)
    source = next((source for source, made in PAGES.items() if made == name), f"docs/{name}")
    markdown = _TABLE_ROW.sub(lambda row: _CODE.sub(_without_escapes, row[0]), markdown)
    return _LINK.sub(lambda found: _relinked(found, source, name, files), markdown)


def with_security(markdown: str, name: str) -> str:
    """Return a page; if it names a server and has no link to the page on secure connections, with one."""
    if not _NAMES_A_SERVER.search(markdown) or _SECURE in markdown or name == _SECURE:
        return markdown
    secure = posixpath.relpath(_SECURE, posixpath.dirname(name) or ".")
    return f"{markdown.rstrip()}\n\nTLS, access keys, open ports: [Secure connections]({secure}).\n"


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Remove the roles of docstrings, as in :class:`Name`, and give cells of tables their heads as labels."""
    return _TABLE.sub(lambda table: with_labels(table[0]), _ROLE.sub("", content))


def on_post_template(output: str, template_name: str, config: MkDocsConfig) -> str:
    """Make the links of the page 404 relative, as those of all pages: the site may be in any folder."""
    if template_name != "404.html":
        return output
    return _ROOT_LINK.sub(r"\1./", output).replace('"base": "/"', '"base": "."')


def with_labels(table: str) -> str:
    """Return a table whose cells name their columns: on a narrow screen each row is a list of them."""
    heads = [_TAG.sub("", head).strip().replace('"', "&quot;") for head in _HEAD.findall(table)]
    if len(heads) < _WIDE:
        return table
    labels = cycle(heads)
    labelled = _CELL.sub(lambda cell: f'<td data-label="{next(labels)}"{cell[1]}>', table)
    return labelled.replace("<table>", '<table data-wide="">', 1)


def _without_escapes(code: "re.Match[str]") -> str:
    r"""Code in a table writes a bar as ``\|``, which is shown as it stands unless it is taken away here."""
    return code[0].replace(r"\|", "|")


def _relinked(found: "re.Match[str]", source: str, name: str, files: Files) -> str:
    text = found[1]
    target = found[2]
    anchor = found[3] or ""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    wanted = PAGES.get(path) or path.removeprefix("docs/")
    if path == "docs/decisions":
        wanted = "decisions/README.md"
    if path in PAGES or path.startswith("docs/"):
        if files.get_file_from_path(wanted) is not None:
            return f"[{text}]({posixpath.relpath(wanted, posixpath.dirname(name) or '.')}{anchor})"
    elif (ROOT / path).exists():
        return text if text.startswith("`") else f"{text} (`{path}`)" if text != path else f"`{path}`"
    return found[0]  # mkdocs warns of it


def describe_strategies() -> str:
    """Return the built-in strategies by their names, as a page."""
    rows = (
        f"| `{entry.name}` | `{entry.make.__name__}` | {', '.join(f'`{one}`' for one in entry.required)} "
        f"| {entry.about.replace('``', '`')} |\n"
        for entry in BUILT_IN.values()
    )
    return (
        "# Strategies by name\n\n"
        'For the command line, Spark options and, without options, consumers (`strategy="AVG"`). '
        "The classes: [strategies and selectors](allocate.md).\n\n"
        f"| name | class | options without a default | what it does |\n|---|---|---|---|\n{''.join(rows)}"
    )


def describe_commands() -> str:
    """Return the commands with their options, as a page."""
    parts = ["# Commands\n\nMade from the commands themselves. By task: [commands](../commands.md).\n"]
    for path, command in every_command():
        parts.append(f"\n## `{path}`\n\n{(command.help or '').strip()}\n")
        rows = [_row(parameter) for parameter in command.params if parameter.name != "help"]
        if rows:
            parts.append("\n| option or argument | default | |\n|---|---|---|\n" + "".join(rows))
    return "".join(parts)


def every_command() -> Iterator[tuple[str, Any]]:
    """Every command that does something, by its whole name."""
    for name, command in sorted(COMMANDS.items()):
        yield from _walk(load(name, command), f"rmqtools {name}")


def _walk(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every command below ``command`` that does something, by its whole name."""
    below = getattr(command, "commands", None)
    if below is None:
        yield path, command
        return
    for name in sorted(below):
        yield from _walk(below[name], f"{path} {name}")


def _row(parameter: Any) -> str:
    is_option = parameter.param_type_name == "option"
    names = ", ".join(f"`{name}`" for name in parameter.opts) if is_option else f"`{parameter.name.upper()}`"
    default = parameter.default
    is_plain = isinstance(default, str | int | float) and not isinstance(default, bool) and default != ""
    shown = f"`{default}`" if is_plain else ""
    about = " ".join((getattr(parameter, "help", None) or "").split()).replace("|", "\\|")
    return f"| {names} | {shown} | {about} |\n"
