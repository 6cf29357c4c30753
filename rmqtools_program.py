"""The program ``rmqtools``: Ctrl-C ends it without a traceback, also while its modules are imported.

Outside the package, whose import takes a part of a second. Nothing is at work yet then, so the signal may end
the process at once; :func:`rmqtools.cli.main` has its own way later.
"""

import signal
from importlib import import_module


def main() -> None:
    """Run the command line."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    import_module("rmqtools.cli").main()
