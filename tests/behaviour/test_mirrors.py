"""Mirrors between topics of one cluster: alike on the fake cluster and on a real one."""

from collections.abc import Iterable

import pytest

from rmqtools import ClientConfig, Message, MessageQueue, Mirror, MirrorConfig, Producer, ProducerConfig
from rmqtools.errors import ConfigError, DataLossError, ProtocolError
from rmqtools.model.append_mark import APPEND_MARK
from rmqtools.model.mirror import MIRROR_REFUSED
from tests.behaviour.site import Site, max_offset, pulled, send_header, until
from tests.support.patience import PATIENT_REQUEST


@pytest.fixture
def copy(site: Site) -> str:
    """The topic of the copies."""
    return site.new_topic()


def mirror(site: Site, topic: str, copy: str, **settings: object) -> Mirror:
    source = ClientConfig(name_server=site.name_server, request_timeout=PATIENT_REQUEST)
    target = ProducerConfig(name_server=site.name_server, request_timeout=PATIENT_REQUEST)
    given = {"topics": {topic: copy}, "source_name": "east", "settle_seconds": 0.0} | settings
    return Mirror(MirrorConfig(source=source, target=target, **given))  # type: ignore[arg-type]


def run(*given: object, **settings: object) -> int:
    with mirror(*given, **settings) as copying:  # type: ignore[arg-type]
        return sum(each.copied for each in copying.run())


def fill(site: Site, wire, producer: Producer, topic: str, bodies: Iterable[str], *, number: int = 0) -> None:
    """Store messages, and wait until they can be read."""
    queue = MessageQueue(topic, site.broker, number)
    end = 1 + max(producer.send(Message(topic, each.encode()), queue=queue).queue_offset for each in bodies)
    until(lambda: max_offset(wire, topic, number) >= end)


def test_a_source_topic_that_was_made_anew_stops_the_mirror(site, wire, producer, topic, copy):
    fill(site, wire, producer, topic, ["1", "2"])
    assert run(site, topic, copy) == 2
    site.admin.delete_topic(topic)
    site.admin.create_topic(topic, read_queue_nums=2, write_queue_nums=2, broker_names=[site.broker])
    until(lambda: max_offset(wire, topic) == 0)
    fill(site, wire, producer, topic, ["new 1", "new 2", "new 3"])

    with pytest.raises(DataLossError, match="deleted and made again"):
        run(site, topic, copy)
    assert len(pulled(wire, copy)) == 2


def test_positions_are_stored_before_anything_is_copied(site, wire, producer, topic, copy):
    fill(site, wire, producer, topic, ["before"])
    assert run(site, topic, copy, begin="latest") == 0
    fill(site, wire, producer, topic, ["1"])
    fill(site, wire, producer, topic, ["2"], number=1)

    assert run(site, topic, copy, begin="latest") == 2


def test_old_copies_that_are_sent_again_are_not_taken_for_the_last_ones(site, wire, producer, topic, copy):
    fill(site, wire, producer, topic, map(str, range(20)))
    assert run(site, topic, copy) == 20
    until(lambda: max_offset(wire, copy) >= 20)
    site.admin.delete_group("RMQTOOLS_EXACT-east", clean_offset=True)  # as if it had died within ten seconds
    site.admin.delete_group("RMQTOOLS_EXACT-east%NEXT", clean_offset=True)
    for message in pulled(wire, copy)[:3]:
        properties = {APPEND_MARK: message.properties[APPEND_MARK]}
        producer.send(
            Message(copy, message.body, properties=properties), queue=MessageQueue(copy, site.broker, 0)
        )
    until(lambda: max_offset(wire, copy) >= 23)

    assert run(site, topic, copy) == 0


def test_topics_that_grow_keep_their_pairs(site, wire, producer, topic, copy):
    fill(site, wire, producer, topic, ["0"], number=0)
    fill(site, wire, producer, topic, ["1"], number=1)
    assert run(site, topic, copy) == 2
    for name in (topic, copy):
        site.admin.create_topic(name, read_queue_nums=3, write_queue_nums=3, broker_names=[site.broker])
    until(lambda: len(producer.fetch_publish_queues(topic)) == 3)
    fill(site, wire, producer, topic, ["2"], number=2)
    assert run(site, topic, copy) == 1

    until(lambda: max_offset(wire, copy, 2) == 1)


def test_a_group_goes_on_behind_its_last_consumed_copy(site, wire, producer, topic, copy, group):
    fill(site, wire, producer, topic, ["1", "2"])
    run(site, topic, copy)
    until(lambda: max_offset(wire, copy) >= 2)
    fill(site, wire, producer, copy, ["own"])
    site.admin.update_consumer_offset(group, MessageQueue(topic, site.broker, 0), 2)
    with mirror(site, topic, copy) as copying:
        (moved,) = copying.move_group(group)
        assert moved.target_offset == 2
        fill(site, wire, producer, topic, ["3"])
        site.admin.update_consumer_offset(group, MessageQueue(topic, site.broker, 0), 3)
        with pytest.raises(ConfigError, match="1 message behind the group"):
            copying.move_group(group)


def test_a_message_without_room_for_a_mark_stops_its_topic_or_goes_to_another_one(
    site, wire, producer, topic, copy
):
    refused, long_name = site.new_topic(queues=1), "e" * 60  # it is three times in a copy's properties
    fill(site, wire, producer, topic, ["1"])
    assert wire.ask(send_header(topic, properties={"note": "x" * 32_500}), b"full").code == 0
    fill(site, wire, producer, topic, ["2"])

    with pytest.raises(ProtocolError, match=r"at offset 1 has .* bytes of properties"):
        run(site, topic, copy, source_name=long_name)
    assert run(site, topic, copy, source_name=long_name, refused=refused) == 1
    until(lambda: max_offset(wire, copy) == 2)
    (found,) = pulled(wire, refused)
    assert found.properties[MIRROR_REFUSED].startswith(f"{site.broker}/0/1: ")
