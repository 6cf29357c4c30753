"""A process that runs examples one after another, so that those with Spark share one JVM.

Reads lines of JSON, ``[path, argument, ...]``, and answers each with one: what the example printed,
and the traceback if it failed.
"""

import io
import json
import os
import runpy
import sys
import traceback
from contextlib import redirect_stdout


def run(path: str, *arguments: str) -> dict[str, str]:
    """Run an example as a program."""
    printed, failure = io.StringIO(), ""
    sys.argv = [path, *arguments]
    with redirect_stdout(printed):
        try:
            runpy.run_path(path, run_name="__main__")
        except SystemExit as ended:
            failure = f"exit code {ended.code}" if ended.code else ""
        except BaseException:  # noqa: BLE001 - whatever it is, the test shows it
            failure = traceback.format_exc()
    return {"printed": printed.getvalue(), "failure": failure}


def main() -> None:
    """Answer each line, until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # only answers go to stdout
    for line in sys.stdin:
        answers.write(json.dumps(run(*json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
