"""Views on Spark Connect, whose options are unknown; classic sessions: tests/spark/test_refresh.py."""

from spark_connector import refresh


class Connect:
    """A session that has no JVM."""


def test_without_options_the_statement_is_printed_without_values(capsys):
    refresh(Connect(), "my`view")

    printed = capsys.readouterr().out
    assert printed.startswith(
        "CREATE OR REPLACE TEMPORARY VIEW `my``view` USING rocketmq OPTIONS (nameServer"
    )
