"""Fetching jars: which are requested, kept and refused. The fetching programs are fakes."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rmqtools.cluster import ClusterError, ensure_jars
from rmqtools.cluster.lock import LockedJar
from tests.support.cluster_scene import JAVA_17, write_program

# writes down each call, and "downloads" whatever lies in $WAREHOUSE
MAVEN = """echo call >> "$WAREHOUSE/../calls"
for argument; do case "$argument" in -DoutputDirectory=*) out="${argument#*=}";; esac; done
for file in "$WAREHOUSE"/*; do echo "Downloaded from x: y/${file##*/} (1 kB)"; done
cp "$WAREHOUSE"/* "$out"
"""
# the same for Ivy, which is java with a jar
IVY = f"""{JAVA_17}
echo call >> "$WAREHOUSE/../calls"
for argument; do case "$argument" in *"/[artifact]"*) out="${{argument%%/[[]*}}";; esac; done
cp "$WAREHOUSE"/* "$out"
"""
FAILING = """echo "[INFO] Scanning"; echo "[ERROR] Failed to execute goal: no space left"; exit 1"""
CAUSES = {
    "PKIX path building failed: unable to find valid certification path": (
        "Java does not trust the certificate of the repository",
        "JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=FILE",
    ),
    "java.net.UnknownHostException: repo.example": ("name look-up of the repository failed",),
    "Connect to repo.example:443 failed: Connection refused": ("connect to the repository failed",),
}
CONTENTS = {"first": b"one", "second": b"two"}


def jar(name: str) -> LockedJar:
    return LockedJar("org.example", name, None, "1", hashlib.sha256(CONTENTS[name]).hexdigest())


JARS = [jar("first"), jar("second")]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with Maven, an empty home, and both jars in the warehouse."""
    for tool in ("sh", "cp"):
        (tmp_path / "programs").mkdir(exist_ok=True)
        (tmp_path / "programs" / tool).symlink_to(f"/bin/{tool}")
    write_program(tmp_path / "programs", "mvn", MAVEN)
    (tmp_path / "warehouse").mkdir()
    for name, content in CONTENTS.items():
        (tmp_path / "warehouse" / f"{name}-1.jar").write_bytes(content)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "programs"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("WAREHOUSE", str(tmp_path / "warehouse"))
    monkeypatch.setenv("RMQTOOLS_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def calls(root: Path) -> int:
    path = root / "calls"
    return len(path.read_text().splitlines()) if path.exists() else 0


def spoil(root: Path, name: str, content: bytes = b"garbage") -> None:
    (root / "warehouse" / f"{name}-1.jar").write_bytes(content)


def test_jars_come_in_the_locks_order_with_the_right_contents(root: Path) -> None:
    assert [path.read_bytes() for path in ensure_jars(JARS)] == [b"one", b"two"]


def test_what_is_here_is_not_fetched_again(root: Path) -> None:
    assert ensure_jars(JARS) == ensure_jars(JARS)
    assert calls(root) == 1


@pytest.mark.process
def test_a_file_that_was_damaged_since_is_fetched_again(root: Path) -> None:
    ensure_jars(JARS)[0].write_bytes(b"damaged")

    assert ensure_jars(JARS)[0].read_bytes() == b"one"


def test_several_at_once_fetch_once(root: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(ensure_jars, [JARS] * 4))

    assert found == [found[0]] * 4
    assert calls(root) == 1


def test_progress_counts_the_jars_that_are_here(root: Path) -> None:
    seen: list[tuple[int, int]] = []

    ensure_jars(JARS, progress=lambda done, total: seen.append((done, total)))

    assert seen == [(0, 2), (1, 2), (2, 2), (2, 2)]


def test_a_broken_download_names_file_sums_and_remedy_and_is_removed(root: Path) -> None:
    spoil(root, "second")
    got = hashlib.sha256(b"garbage").hexdigest()

    with pytest.raises(ClusterError) as caught:
        ensure_jars(JARS)

    assert f"expected SHA-256 {JARS[1].sha256}, got {got}, for second-1.jar" in str(caught.value)
    assert "try again" in str(caught.value)
    assert [path.name for path in (root / "cache").rglob("*.jar")] == ["first-1.jar"]


def test_a_jar_that_did_not_come_is_named(root: Path) -> None:
    (root / "warehouse" / "second-1.jar").unlink()

    with pytest.raises(ClusterError, match=r"got no file, for second-1\.jar"):
        ensure_jars(JARS)


def test_after_a_broken_download_the_next_try_can_succeed(root: Path) -> None:
    spoil(root, "second")
    with pytest.raises(ClusterError):
        ensure_jars(JARS)
    spoil(root, "second", CONTENTS["second"])

    assert len(ensure_jars(JARS)) == 2


def test_a_program_that_fails_is_quoted_with_its_log(root: Path) -> None:
    write_program(root / "programs", "mvn", FAILING)

    with pytest.raises(ClusterError, match=r"Maven .*\(exit code 1\): Failed to execute goal: no space left"):
        ensure_jars(JARS)
    assert "Scanning" in (root / "cache" / "jars" / "other" / "fetch.log").read_text()


def test_ivy_is_asked_where_maven_is_missing_and_its_own_copies_go(root: Path) -> None:
    (root / "programs" / "mvn").unlink()
    write_program(root / "programs", "java", IVY)
    (root / "cache" / "ivy" / "cache").mkdir(parents=True)

    assert [path.read_bytes() for path in ensure_jars(JARS)] == [b"one", b"two"]
    assert [path.name for path in (root / "cache").iterdir()] == ["jars"]


def test_without_both_the_error_names_both(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "programs" / "mvn").unlink()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    with pytest.raises(
        ClusterError, match=r"neither Maven .* nor PySpark.*pip install pyspark, or '.\[spark\]' in"
    ):
        ensure_jars(JARS)


def test_what_maven_has_downloaded_before_is_taken_from_its_repository(root: Path) -> None:
    for locked in JARS:
        path = root / "home" / ".m2" / "repository" / locked.repository_path
        path.parent.mkdir(parents=True)
        path.write_bytes(CONTENTS[locked.artifact])

    assert len(ensure_jars(JARS)) == 2
    assert calls(root) == 0


def test_a_wrong_file_in_mavens_repository_is_not_taken_even_if_nothing_better_comes(root: Path) -> None:
    write_program(root / "programs", "mvn", FAILING)
    path = root / "home" / ".m2" / "repository" / JARS[0].repository_path
    path.parent.mkdir(parents=True)
    path.write_bytes(b"garbage")

    with pytest.raises(ClusterError):
        ensure_jars(JARS)
    assert list((root / "cache").rglob("*.jar")) == []


def test_the_cache_is_where_xdg_says_if_nothing_else_is_said(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RMQTOOLS_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(root / "xdg"))

    assert ensure_jars(JARS)[0] == root / "xdg" / "rmqtools" / "jars" / "other" / "first-1.jar"


@pytest.mark.parametrize("words", CAUSES)
def test_a_failed_fetch_names_its_cause_its_remedy_and_the_folder_for_jars_first(
    root: Path, words: str
) -> None:
    lines = "".join(f"echo 'Server access error: {words}';" for _ in range(100))
    write_program(
        root / "programs", "mvn", f"{lines} echo '[ERROR] Failed to execute goal: artifact not found'; exit 1"
    )

    with pytest.raises(ClusterError) as caught:
        ensure_jars(JARS)

    first, *others = str(caught.value).splitlines()
    assert [text for text in (*CAUSES[words], f"copy the jars to {root}") if text not in first] == []
    assert others == []
    assert "not found" not in first


def test_jars_that_were_copied_to_that_folder_are_taken(root: Path) -> None:
    write_program(root / "programs", "mvn", "exit 1")
    with pytest.raises(ClusterError):
        ensure_jars(JARS)
    (folder,) = (root / "cache" / "jars").iterdir()
    for file in (root / "warehouse").iterdir():
        (folder / file.name).write_bytes(file.read_bytes())

    assert [path.read_bytes() for path in ensure_jars(JARS)] == [b"one", b"two"]


def test_a_cache_folder_that_cannot_be_made_is_refused_with_the_variable_that_names_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "file").touch()
    monkeypatch.setenv("RMQTOOLS_CACHE_DIR", str(root / "file" / "cache"))

    with pytest.raises(ClusterError, match=f"{root}/file/cache/.* cannot be used: .*RMQTOOLS_CACHE_DIR"):
        ensure_jars(JARS)
