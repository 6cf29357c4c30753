"""The package ``rmqtools.arrow`` where its libraries are missing."""

import subprocess
import sys

import pytest


@pytest.mark.process
@pytest.mark.parametrize("missing", ["numpy", "pyarrow"])
def test_an_import_without_its_libraries_names_the_extra(missing: str) -> None:
    program = f"import sys; sys.modules[{missing!r}] = None; import rmqtools.arrow"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    last = done.stderr.splitlines()[-1]
    assert "ImportError: rmqtools.arrow needs numpy and pyarrow: pip install 'rmqtools[arrow]'" in last
    assert f"import of {missing} halted" in last
