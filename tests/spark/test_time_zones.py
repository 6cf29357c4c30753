"""Times without a zone mean in option ``timeZone`` what they mean in Spark's session."""

from datetime import UTC, datetime

import pytest

from rmqtools import Message
from spark_connector.options.time_zone import parse_zone

pytestmark = pytest.mark.spark

SUMMER = datetime(2015, 7, 1, tzinfo=UTC)  # the rules of that year are the same in old and new zone data
SYSTEM_V = "SystemV/"  # obsolete zones that only Java has
SESSION_ZONE = "spark.sql.session.timeZone"
OFFSETS = ("+2", "+02", "+2:00", "+02:3", "+0230", "+02:30:15", "-18:00")
NAMED_OFFSETS = ("Z", "UT", "GMT0", "GMT+2", "UTC-02:30")
SHORT_NAMES = ("ACT", "AST", "BST", "CST", "EST", "HST", "IST", "MST", "PST", "SST", "VST", "CET", "EST5EDT")


@pytest.fixture
def session_zone(spark):
    """``session_zone("GMT+2")`` sets the session's zone; the session gets its own back."""
    before = spark.conf.get(SESSION_ZONE)
    yield lambda zone: spark.conf.set(SESSION_ZONE, zone)
    spark.conf.set(SESSION_ZONE, before)


def test_every_zone_of_sparks_session_is_accepted_and_means_the_same(spark):
    java = spark._jvm
    instant = java.java.time.Instant.ofEpochSecond(int(SUMMER.timestamp()))
    known = [name for name in java.java.time.ZoneId.getAvailableZoneIds() if not name.startswith(SYSTEM_V)]
    names = {*OFFSETS, *NAMED_OFFSETS, *SHORT_NAMES, *known}

    def seconds_in_spark(name):
        zone = java.org.apache.spark.sql.catalyst.util.DateTimeUtils.getZoneId(name)
        return zone.getRules().getOffset(instant).getTotalSeconds()

    def seconds_here(name):
        local = SUMMER.astimezone(parse_zone(name))
        return (local.replace(tzinfo=UTC) - SUMMER).total_seconds()

    ours = {name: seconds_here(name) for name in names}

    assert ours == {name: seconds_in_spark(name) for name in names}


@pytest.mark.broker
@pytest.mark.parametrize("zone", ["GMT+2", "PST"])
def test_a_time_as_the_session_shows_it_selects_the_messages_from_then_on(
    spark, session_zone, admin, producer, make_topic, read, zone
):
    topic = make_topic(queues=1)
    queue = admin.fetch_publish_queues(topic)[0]
    for number in range(3):
        producer.send(Message(topic, b"%d" % number), queue=queue)
    admin.await_readable({queue: 3})
    session_zone(zone)
    shown = "date_format(storeTimestamp, \"yyyy-MM-dd'T'HH:mm:ss.SSS\") AS shown"
    rows = read(topic=topic).selectExpr("queueOffset", shown).collect()
    last = max(row.shown for row in rows)

    found = read(topic=topic, startingTimestamp=last, timeZone=spark.conf.get(SESSION_ZONE)).collect()

    assert [row.queueOffset for row in found] == [row.queueOffset for row in rows if row.shown >= last]
