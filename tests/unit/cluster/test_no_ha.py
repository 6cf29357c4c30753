"""The class that keeps a broker's replication from opening its port."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from rmqtools.cluster import ensure_jars
from rmqtools.cluster.lock import locked_jars
from rmqtools.cluster.server import NO_HA

SOURCE = NO_HA / "rmqtools" / "NoHaService.java"


def test_the_service_file_names_the_class_that_is_there():
    (file,) = (NO_HA / "META-INF" / "service").iterdir()

    assert file.name == "org.apache.rocketmq.store.ha.HAService"
    assert file.read_text() == "rmqtools.NoHaService\n"
    assert SOURCE.with_suffix(".class").read_bytes().startswith(b"\xca\xfe\xba\xbe")


@pytest.mark.broker
def test_the_class_is_what_its_source_compiles_to(tmp_path: Path):
    compiler = shutil.which("javac")
    assert compiler is not None, "javac is missing: install a JDK"
    jars = ":".join(map(str, ensure_jars(locked_jars("5.5.0"))))
    (flags,) = re.findall(r"javac (--release \d+ -g:none)", SOURCE.read_text())
    command = [compiler, *flags.split(), "-cp", jars, "-d", str(tmp_path), str(SOURCE)]

    subprocess.run(command, check=True, capture_output=True, timeout=120)

    assert (tmp_path / "rmqtools" / "NoHaService.class").read_bytes() == SOURCE.with_suffix(
        ".class"
    ).read_bytes()
