"""Runs the compiled module under the sanitizers of gcc: ``make asan``.

AddressSanitizer finds reads and writes outside of memory and after its release; UndefinedBehaviorSanitizer
finds overflows and casts that C does not define. A copy of the checkout in ``.build/asan`` gets the module
with both; there the unit tests of the module run, then the fuzz. The first finding ends the run.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from hatch_build import compile_twins
from tools.release import copy_checkout

ROOT = Path(__file__).resolve().parents[1]
COPY = ROOT / ".build" / "asan"
_FLAGS = (
    "-g",
    "-O1",
    "-fno-omit-frame-pointer",
    "-fno-wrapv",  # CPython is built with -fwrapv, which makes overflows of signed numbers legal
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=undefined",
)
_LOADED = (
    "-c",
    "from rmqtools.compiled import twins; print('loaded', twins.__file__.partition('/.build/')[2])",
)
_TESTS = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit/compiled", "-k", "not without_twins")
"""The tests that are left out start whole runs of others, in Python only."""
_TARGETS = ("compiled", "frames", "headers", "messages")
"""The decoders that use the compiled module."""


def sanitizer_environment() -> dict[str, str]:
    """Return the environment of a Python that loads a module with sanitizers.

    Python itself has none, so the library comes first, and Python's own allocator is off: it would hide
    which object a byte belongs to. Leaks are not looked for, since Python keeps much until its end.
    """
    find = ("gcc", "-print-file-name=libasan.so")
    library = subprocess.run(find, check=True, capture_output=True, text=True).stdout.strip()
    return {
        **os.environ,
        "LD_PRELOAD": library,
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(COPY),
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def build() -> Path:
    """Compile the module with sanitizers in a fresh copy of the checkout; return its file."""
    shutil.rmtree(COPY, ignore_errors=True)
    copy_checkout(COPY)
    return compile_twins(COPY, in_place=True, flags=_FLAGS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, run the tests and the fuzz; return 1 if one of them fails."""
    parser = argparse.ArgumentParser(prog="python -m tools.asan", description=__doc__)
    parser.add_argument("--seconds", type=int, default=120, help="of fuzz (default: %(default)s)")
    seconds = parser.parse_args(arguments).seconds
    build()
    environment = sanitizer_environment()
    targets = [f"--target={name}" for name in _TARGETS]
    fuzz = ("-m", "tools.measure.fuzz", *targets, "--seconds", str(seconds))
    for command in (_LOADED, _TESTS, fuzz):
        print("python", *command, flush=True)
        if subprocess.run((sys.executable, *command), cwd=COPY, env=environment, check=False).returncode:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
