"""The locked dependencies: ``make`` installs them on the oldest Python, too. Debian 12 has 3.11.2."""

import re
from importlib import metadata
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

LOCK = Path(__file__).resolve().parents[3] / "requirements.lock"
VERSIONS = dict(re.findall(r"^([a-z0-9][\w.-]*)==(\S+)", LOCK.read_text(), re.MULTILINE))
OLDEST: dict[str, str] = {
    **{name: str(text) for name, text in default_environment().items()},
    "python_full_version": "3.11.0",
    "python_version": "3.11",
    "extra": "",
}


@pytest.mark.parametrize("name", VERSIONS)
def test_the_oldest_python_can_install_every_locked_package_with_what_it_needs(name):
    try:
        package = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        pytest.skip(f"this environment was not made from the lock: it has no {name}")
    if package["Version"] != VERSIONS[name]:
        pytest.skip(f"this environment was not made from the lock: it has {name} {package['Version']}")
    needed = [Requirement(text) for text in package.get_all("Requires-Dist", [])]

    assert "3.11.0" in SpecifierSet(str(package.json.get("requires_python", "")))
    missing = {
        canonicalize_name(each.name) for each in needed if each.marker is None or each.marker.evaluate(OLDEST)
    } - {canonicalize_name(name) for name in VERSIONS}
    assert missing <= {"pip", "setuptools"}, "run make lock on Python 3.11.0 to 3.11.2"
