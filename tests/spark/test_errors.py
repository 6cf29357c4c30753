"""Errors of reads and writes, with name, value and remedy; no option of SQL runs a program."""

import pytest

from rmqtools import Perm
from tests.spark.streams import error_of


def test_save_refuses_to_overwrite(write):
    assert "use .mode('append')" in error_of(
        lambda: write([("a",)], "body string", topic="T", mode="overwrite")
    )


def test_a_topic_that_may_not_be_read_is_named(read, make_topic):
    topic = make_topic(perm=Perm.WRITE)

    text = error_of(lambda: read(topic=topic).count())

    assert "PermissionDeniedError" in text
    assert topic in text


@pytest.mark.parametrize(
    "options",
    [
        pytest.param("readers '2', allocator 'subprocess:getoutput', 'allocator.cmd' '{}'", id="allocator"),
        pytest.param(
            "readers '2', allocator 'MACHINE_ROOM_NEARBY', 'allocator.resolver' 'subprocess:Popen'",
            id="resolver",
        ),
    ],
)
def test_sql_runs_no_program_whatever_it_sets_before(spark, tmp_path, options):
    file = tmp_path / "ran"
    settings = ("spark.executorEnv.", "spark.yarn.appMasterEnv.", "spark.sql.", "")
    for name in settings:
        spark.sql(f"SET {name}RMQTOOLS_SPARK_PLUG_INS=subprocess")
    view = f"nameServer '127.0.0.1:9', topic 'T', {options.format(f'touch {file}')}"

    text = error_of(lambda: spark.sql(f"CREATE TEMPORARY VIEW harmful USING rocketmq OPTIONS ({view})"))

    for name in settings:
        spark.conf.unset(f"{name}RMQTOOLS_SPARK_PLUG_INS")
    assert "Set RMQTOOLS_SPARK_PLUG_INS=tests.spark.plug_ins,subprocess before Spark starts" in text
    assert not file.exists()


def test_sql_writes_run_no_program(spark, tmp_path):
    file = tmp_path / "ran"
    options = {"nameServer": "127.0.0.1:9", "topic": "T", "queueSelector": "subprocess:getoutput"}
    frame = spark.sql("SELECT 'a' AS body").write.format("rocketmq").mode("append")

    text = error_of(lambda: frame.options(**options, **{"queueSelector.cmd": f"touch {file}"}).save())

    assert "Set RMQTOOLS_SPARK_PLUG_INS=tests.spark.plug_ins,subprocess before Spark starts" in text
    assert not file.exists()
