"""Conf files and command lines of servers."""

from pathlib import Path

import pytest

from rmqtools.cluster.server import NO_HA, Server, broker, name_server, slave, tail


def make_broker(directory: Path, *, timer_wheel: bool = False, **settings: str) -> Server:
    first = name_server(directory, 9876)
    return broker(1, 10911, name_server=first, settings=settings, timer_wheel=timer_wheel)


def conf(server: Server) -> dict[str, str]:
    server.write_conf()
    lines = (server.home / "conf" / "server.conf").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("brokerName", "broker-b"),  # by letter
        ("namesrvAddr", "127.0.0.1:9876"),
        *[(key, "127.0.0.1") for key in ("bindAddress", "brokerIP1", "brokerIP2")],  # loopback only
        *[(key, "true") for key in ("enablePropertyFilter", "recallMessageEnable", "traceTopicEnable")],
    ],
)
def test_a_broker_has_settings_that_are_not_the_defaults(tmp_path: Path, key: str, value: str) -> None:
    assert conf(make_broker(tmp_path))[key] == value


def test_a_name_server_listens_on_loopback_only(tmp_path: Path) -> None:
    assert conf(name_server(tmp_path, 1))["bindAddress"] == "127.0.0.1"


def test_the_timer_wheel_brings_its_memory(tmp_path: Path) -> None:
    with_wheel, without = make_broker(tmp_path, timer_wheel=True), make_broker(tmp_path)

    assert conf(with_wheel)["timerWheelEnable"] == "true"
    assert conf(without)["timerWheelEnable"] == "false"
    assert "-XX:MaxDirectMemorySize=256m" in with_wheel.command("java")
    assert "-XX:MaxDirectMemorySize=192m" in without.command("java")


def test_a_directory_of_any_name_survives_javas_properties(tmp_path: Path) -> None:
    written = conf(make_broker(tmp_path / "a b\\ü\U0001f600"))

    assert written["storePathRootDir"].endswith("/a b\\u005c\\u00fc\\ud83d\\ude00/broker-b/store")


def test_the_class_path_is_the_conf_directory_and_the_jars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAMESRV_ADDR", "elsewhere:9876")
    server = make_broker(tmp_path)

    variables = server.variables([Path("/jars/a.jar"), Path("/jars/b.jar")])

    assert variables["CLASSPATH"] == f"{server.home}/conf:{NO_HA}:/jars/a.jar:/jars/b.jar"
    assert "NAMESRV_ADDR" not in variables


def test_a_broker_that_may_have_slaves_keeps_its_replication(tmp_path):
    server = make_broker(tmp_path, brokerRole="SYNC_MASTER")

    assert server.variables([Path("/jars/a.jar")])["CLASSPATH"] == f"{server.home}/conf:/jars/a.jar"


@pytest.mark.parametrize(
    ("settings", "port"),
    [({}, 10912), ({"haListenPort": "0"}, 10912), ({"haListenPort": "20000"}, 20000)],
    ids=["default", "zero", "given"],
)
def test_the_port_of_replication_is_the_one_that_the_broker_opens(tmp_path, settings, port):
    assert make_broker(tmp_path, **settings).ha_port == port


def test_a_slave_has_its_masters_name_and_settings_and_files_and_ports_of_its_own(tmp_path):
    master = make_broker(tmp_path, haListenPort="10912", brokerPermission="4")
    copy = slave(master, 2, 10931)

    written, original = conf(copy), conf(master)

    assert (copy.name, copy.broker_name, copy.broker_id) == ("broker-b-slave-2", "broker-b", 2)
    assert written["storePathCommitLog"] == f"{tmp_path}/broker-b-slave-2/store/commitlog"
    changed = {name for name in original if written[name] != original[name]}
    ports, stores = {"listenPort", "haListenPort"}, {"storePathRootDir", "storePathCommitLog"}
    assert changed == {"brokerId", "brokerRole", *ports, *stores}
    assert str(NO_HA) not in master.class_path([]) + copy.class_path([])


def test_confs_are_for_their_owner_only_and_written_over_no_link(tmp_path):
    server, target = make_broker(tmp_path), tmp_path / "target"
    target.write_text("mine")
    (server.home / "conf").mkdir(parents=True)
    (server.home / "conf" / "server.conf").symlink_to(target)

    server.write_conf()

    conf = server.home / "conf" / "server.conf"
    assert target.read_text() == "mine"
    assert conf.stat().st_mode & 0o777 == 0o600
    assert server.home.stat().st_mode & 0o777 == conf.parent.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_is_a_link_is_not_written_into(tmp_path):
    server, elsewhere = make_broker(tmp_path), tmp_path / "elsewhere"
    elsewhere.mkdir()
    server.home.symlink_to(elsewhere)

    with pytest.raises(OSError, match=str(server.home)):
        server.write_conf()
    assert list(elsewhere.iterdir()) == []


def test_a_tail_has_the_last_lines_without_java_frames(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("one\ntwo\njava.io.IOException: full\n\tat a.B.c(B.java:1)\n\t... 12 more\n")

    assert tail(log, 2) == "two\njava.io.IOException: full"
    assert tail(tmp_path / "none") == "(nothing written)"
