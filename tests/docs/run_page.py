"""A program that runs the blocks of one page, in their order, as a reader would.

    python -m tests.docs.run_page PAGE ADDRESS

Python blocks share one namespace; commands run in bash. ADDRESS is put in place of the page's.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.docs.blocks import Block, blocks_of
from tests.docs.pages import ADDRESS, AFTER, BEFORE, REPLACED


class Reader:
    """Runs one page."""

    def __init__(self, page: str, address: str) -> None:
        self._page = page
        self._words = {ADDRESS: address, ADDRESS.rpartition(":")[2]: address.rpartition(":")[2]}
        self._words |= REPLACED.get(page, {})
        self._namespace: dict[str, Any] = {"__name__": "__main__"}

    def run(self) -> None:
        self._run_python(BEFORE.get(self._page, ""), "before")
        for block in blocks_of(self._page):
            if block.language == "python":
                self._run_python(block.text, f"{block.page}:{block.line}")
            else:
                self._run_commands(block)
        self._run_python(AFTER.get(self._page, ""), "after")

    def _run_python(self, text: str, name: str) -> None:
        exec(compile(self._replaced(text), name, "exec"), self._namespace)

    def _run_commands(self, block: Block) -> None:
        for line in map(self._replaced, block.commands):
            if line.startswith("pip install"):
                continue  # tests/unit/tools compares the extras
            if line.startswith("export "):
                name, _, value = line.removeprefix("export ").partition("=")
                os.environ[name] = value
                continue
            print("$", line, flush=True)
            done = subprocess.run(["bash", "-o", "pipefail", "-c", line], stdin=subprocess.DEVNULL)
            if done.returncode:
                raise RuntimeError(f"{block.page}:{block.line}: {line}: exit code {done.returncode}")

    def _replaced(self, text: str) -> str:
        for old, new in self._words.items():
            text = text.replace(old, new)
        return text


if __name__ == "__main__":
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    Reader(*sys.argv[1:]).run()
