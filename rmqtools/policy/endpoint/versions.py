"""Versions of servers, as their answers carry them: numbers that count the releases.

Source of the rule: MQVersion (Java client 5.5.0): from 4.0.0 on each release has two numbers, the snapshot's
and its own, with ten releases in each minor version and ten minor versions in each major one.
"""

_FIRST_MAJOR, _FIRST_NUMBER = 4, 213  # V4_0_0


def parse_version(text: str) -> int:
    """Return the number of a version: ``5.3.2`` is 477; ``""`` is 0, older than all.

    Raises:
        ValueError: not of the form ``major.minor.patch``.
    """
    if not text:
        return 0
    major, minor, patch = map(int, text.split("."))
    return _FIRST_NUMBER + 2 * (100 * (major - _FIRST_MAJOR) + 10 * minor + patch)


def format_version(number: int) -> str:
    """Return the version of a number, ``5.3.2``; for numbers before 4.0.0 ``older than 4.0.0``."""
    steps = (number - _FIRST_NUMBER) // 2
    if steps < 0:
        return "older than 4.0.0"
    return f"{_FIRST_MAJOR + steps // 100}.{steps // 10 % 10}.{steps % 10}"
