"""The exit codes of all commands. A test compares docs/commands.md, and every ``typer.Exit``, with them."""

from enum import IntEnum
from typing import Self

from rmqtools.errors import ConfigError, RemotingError, RocketMQError


class ExitCode(IntEnum):
    """Exit codes with their meanings. After a signal it is 128 and the signal's number instead."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Self:
        """Make a member of its number and its text."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    DONE = 0, "done, and nothing is wrong"
    NO = 1, "refused, failed, not found, or something is wrong"
    USAGE = 2, "an option, an argument or a setting that cannot be used"
    INCOMPLETE = 3, "incomplete: servers do not answer, and standard error names them"


def exit_code_of(error: RocketMQError) -> ExitCode:
    """Return the exit code of a command that ends with an error."""
    kinds = {ConfigError: ExitCode.USAGE, RemotingError: ExitCode.INCOMPLETE}
    return next((code for kind, code in kinds.items() if isinstance(error, kind)), ExitCode.NO)
