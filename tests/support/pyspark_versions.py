"""Virtual environments with other versions of PySpark, made once in ``.build`` and used again.

Each has only PySpark of its own. All other packages are those of the environment that runs the tests.
"""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Final

from rmqtools.cluster.file_lock import FileLock

ROOT: Final = Path(__file__).resolve().parents[2]
VERSIONS: Final = {"3.5": "3.5.9", "4.0": "4.0.5", "4.1": "4.1.4", "4.2": "4.2.1"}
_SECONDS: Final = 900.0  # one package has 400 MB


def python_with(series: str) -> str:
    """The path of a Python with PySpark of a series such as ``4.0``, or of exactly ``4.2.0``."""
    version = VERSIONS.get(series, series)
    folder = ROOT / ".build" / "pyspark" / f"{version}-{sys.version_info.major}.{sys.version_info.minor}"
    lock = FileLock(folder.with_name(f"{folder.name}.lock"))
    lock.acquire(wait=True)  # another process of a parallel run may be making it
    try:
        if not (folder / "done").exists():
            _make(folder, version)
    finally:
        lock.release()
    return str(folder / "bin" / "python")


def _make(folder: Path, version: str) -> None:
    venv.create(folder, clear=True, with_pip=True)
    _link_packages(folder)
    install = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-cache-dir"]
    subprocess.run([*install, f"pyspark=={version}"], check=True, timeout=_SECONDS)
    (folder / "done").touch()


def _link_packages(folder: Path) -> None:
    """Add the packages of this environment, after those that the folder gets itself."""
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "tests.pth").write_text(sysconfig.get_path("purelib") + "\n" + str(ROOT) + "\n")


if __name__ == "__main__":
    for name in sys.argv[1:] or VERSIONS:
        print(python_with(name))
