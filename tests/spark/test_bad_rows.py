"""Rows that cannot be messages, by the option ``onBadRow``."""

ROWS = [(b"a",), (b"",), (b"b",), (None,)]


def bodies(rows):
    return sorted(bytes(row.body) for row in rows)


def test_bad_rows_are_skipped_or_diverted_with_the_reason(write, read_rows, make_topic):
    topic, bad = make_topic(), make_topic()

    write(ROWS, "body binary", topic=topic, onBadRow="skip")
    write(ROWS, "body binary", topic=topic, onBadRow=f"topic:{bad}")

    assert bodies(read_rows(topic=topic)) == [b"a", b"a", b"b", b"b"]
    reasons = [dict(row.properties)["SPARK_BAD_ROW"] for row in read_rows(topic=bad)]
    assert sorted(reason.split(":")[0] for reason in reasons) == ["row 1", "row 3"]
