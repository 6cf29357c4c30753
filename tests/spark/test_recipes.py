"""The recipes of docs/spark-recipes.md that need jars of others, on the PySpark that the jars are for."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

from rmqtools import Message
from tests.spark.spark_jars import AVRO, DELTA, ICEBERG, class_path
from tests.support.cluster_scene import wait_until
from tests.support.pyspark_versions import python_with
from tests.support.reading import await_readable
from tests.support.spark_processes import ROOT, environment, run

pytestmark = [pytest.mark.timeout(1800), pytest.mark.slow]

_SECONDS = 600


def protobuf_module() -> str:
    """A module as ``protoc`` makes it, with a message ``Order`` of ``id`` and ``amount``."""
    file = FileDescriptorProto(name="orders.proto", syntax="proto3")
    order = file.message_type.add(name="Order")
    kinds = {"id": FieldDescriptorProto.TYPE_INT64, "amount": FieldDescriptorProto.TYPE_DOUBLE}
    for number, (name, kind) in enumerate(kinds.items(), start=1):
        order.field.add(name=name, number=number, type=kind, label=FieldDescriptorProto.LABEL_OPTIONAL)
    return "\n".join(
        (
            "from google.protobuf import descriptor_pool",
            "from google.protobuf.internal import builder",
            f"file = descriptor_pool.Default().AddSerializedFile({file.SerializeToString()!r})",
            "builder.BuildMessageAndEnumDescriptors(file, globals())",
            "builder.BuildTopDescriptorsAndMessages(file, 'orders_pb2', globals())",
        )
    )


def variables(folder: Path, python: str, jars: str, **more: str) -> dict[str, str]:
    """The environment of a session of its own, which leaves nothing outside of the folder."""
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={folder}",
        **more,
    }
    words = [word for setting in settings.items() for word in ("--conf", "=".join(setting))]
    arguments = ["--master", "local[2]", "--driver-class-path", jars, *words, "pyspark-shell"]
    return environment(
        PYSPARK_PYTHON=python, PYSPARK_SUBMIT_ARGS=" ".join(arguments), PYTHONPATH=f"{folder}:{ROOT}"
    )


def test_bodies_in_json_avro_and_protobuf_become_columns(tmp_path, local_cluster, make_topic):
    (tmp_path / "orders_pb2.py").write_text(protobuf_module())
    python = python_with("4.2")
    options = json.dumps({"nameServer": local_cluster.name_server})
    topics = [make_topic(queues=1) for _ in range(3)]

    *_, printed = run(
        [python, "-m", "tests.spark.recipes", "bodies", options, *topics],
        variables(tmp_path, python, class_path(AVRO)),
        cwd=ROOT,
    )

    assert json.loads(printed) == [[["1", 1, 1.5], ["2", 2, 3.0], ["3", 3, 4.5]]] * 3


@pytest.mark.parametrize(("form", "jars"), [("delta", DELTA), ("iceberg", ICEBERG)])
def test_a_table_has_every_row_once_after_its_driver_was_killed_between_micro_batches(
    form, jars, tmp_path, local_cluster, make_topic, producer, admin
):
    """The killed driver had written a micro-batch to the table, and not yet ended it in the checkpoint."""
    topic, python = make_topic(), python_with("4.1")
    source = {"nameServer": local_cluster.name_server, "topic": topic}
    command = [python, "-m", "tests.spark.recipes", form, str(tmp_path), json.dumps(source)]
    env = variables(tmp_path, python, class_path(jars))
    commits = tmp_path / "table_checkpoint" / "commits"

    def send(count):
        await_readable(admin, producer.send_many([Message(topic, b"order")] * count))

    def ended():
        return sorted(int(file.name) for file in commits.glob("*") if file.name.isdigit())

    send(300)
    with (tmp_path / "driver.log").open("wb") as log:
        driver = subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=log, start_new_session=True)
    try:
        wait_until(lambda: len(ended()) > 0 or driver.poll() is not None, seconds=_SECONDS)
        assert driver.poll() is None, (tmp_path / "driver.log").read_text()[-4000:]
        send(300)
        wait_until(lambda: len(ended()) > 1 or driver.poll() is not None, seconds=_SECONDS)
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait(60)
    last = ended()[-1]
    for name in (f"{last}", f".{last}.crc"):
        (commits / name).unlink(missing_ok=True)
    send(300)
    (tmp_path / "last").touch()

    *_, printed = run(command, env, cwd=ROOT)

    assert json.loads(printed) == [900, 900]


def test_a_micro_batch_done_again_adds_nothing_to_a_table_and_a_topic(
    tmp_path, local_cluster, make_topic, producer, admin
):
    topic, target, python = make_topic(), make_topic(), python_with("4.1")
    options = json.dumps({"nameServer": local_cluster.name_server, "topic": topic})
    await_readable(admin, producer.send_many([Message(topic, b"order")] * 100))
    delta = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }

    *_, printed = run(
        [python, "-m", "tests.spark.recipes", "both", str(tmp_path), options, target],
        variables(tmp_path, python, class_path(DELTA), **delta),
        cwd=ROOT,
    )

    assert json.loads(printed) == [100, 100]
