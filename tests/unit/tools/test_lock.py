"""The locked dependencies: what ``make`` installs on every Python that the project supports."""

import re
from importlib import metadata
from pathlib import Path

from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[3]


def test_every_locked_package_can_be_installed_on_the_oldest_python():
    """Debian 12 has Python 3.11.2; the lock may be made on a newer one."""
    names = re.findall(r"^([a-z0-9][\w.-]*)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    wanted = {name: metadata.metadata(name).get("Requires-Python", "") for name in names}

    assert {name: text for name, text in wanted.items() if "3.11.0" not in SpecifierSet(text)} == {}
