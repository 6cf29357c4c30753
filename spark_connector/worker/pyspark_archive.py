"""Compiles the PySpark that Spark's Python processes import.

Spark starts several Python processes for a first read, and one for each stream. All import PySpark from the
archive ``python/lib/pyspark.zip``, which comes without bytecode; Python cannot store any for an archive, so
each process compiles it again. On a busy machine a stream's process may then need longer than the ten seconds
that Spark waits for it.
"""

import compileall
import importlib.util
import shutil
import tempfile
import warnings
import zipfile
from pathlib import Path
from py_compile import PycInvalidationMode

from rmqtools.errors import ConfigError


def find_archive() -> Path:
    """Return the path of the archive of the Spark that this process would start.

    Raises:
        ConfigError: there is none.
    """
    from pyspark.find_spark_home import _find_spark_home

    archive = Path(_find_spark_home(), "python", "lib", "pyspark.zip")
    if not archive.is_file():
        raise ConfigError(f"{archive} does not exist: set SPARK_HOME to the folder of Spark")
    return archive


def is_compiled(archive: Path) -> bool:
    """Return whether an archive has bytecode for this version of Python."""
    with zipfile.ZipFile(archive) as packed:
        try:
            with packed.open("pyspark/__init__.pyc") as file:
                return file.read(4) == importlib.util.MAGIC_NUMBER
        except KeyError:
            return False


def compile_archive(archive: Path) -> None:
    """Add bytecode for this version of Python to an archive; processes that read it go on.

    Raises:
        ConfigError: it cannot be replaced.
    """
    try:
        with tempfile.TemporaryDirectory(dir=archive.parent, prefix="pyspark-") as name:
            folder, fresh = Path(name, "content"), Path(name, archive.name)
            with zipfile.ZipFile(archive) as packed:
                packed.extractall(folder)
            shutil.copy(archive, fresh)
            with warnings.catch_warnings():  # of the sources of others, and of bytecode that is there twice
                warnings.simplefilter("ignore")
                _compile(folder)
                with zipfile.ZipFile(fresh, "a", zipfile.ZIP_DEFLATED) as packed:  # all in it stays in place
                    for file in sorted(folder.rglob("*.pyc")):
                        packed.write(file, file.relative_to(folder))
            fresh.replace(archive)
    except OSError as error:
        raise ConfigError(f"{archive} cannot be replaced: {error}") from error


def _compile(folder: Path) -> None:
    """Write the bytecode of all modules beside them. It is used without a look at its source."""
    compileall.compile_dir(
        folder,
        maxlevels=99,
        quiet=2,
        force=True,
        legacy=True,
        stripdir=str(folder),
        invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
    )
