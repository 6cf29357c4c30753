from rmqtools.allocate import Pins
from rmqtools.cli.top.effect import pin_effect
from rmqtools.group import GroupMember, GroupView, QueueProgress
from rmqtools.model.queue import MessageQueue

QUEUES = [MessageQueue("orders", "broker-a", index) for index in range(4)]
VIEW = GroupView(
    group="staging",
    members=(
        GroupMember(client_id="10.0.0.1@a", queues=tuple(QUEUES[:2])),
        GroupMember(client_id="10.0.0.2@b", queues=tuple(QUEUES[2:])),
    ),
    progress={queue: QueueProgress(max_offset=9, consumer_offset=0) for queue in QUEUES},
)
TO_FIRST = Pins(0, ["10.0.0.1"], when_absent="nobody")


def test_the_effect_names_who_gets_queues_who_loses_them_and_what_happens_meanwhile():
    assert pin_effect(VIEW, TO_FIRST, Pins(0)).splitlines() == [
        "Pin group staging to 10.0.0.1?",
        "",
        "1 of 2 members share all 4 queues (4 each), the other 1 get none.",
        "Moves 2 queues of orders.",
        "While no such machine is connected, nobody consumes: messages wait.",
    ]


def test_pins_of_somebody_else_that_are_replaced_are_named():
    current = Pins(7, ["10.0.0.2"], when_absent="everybody", set_by="jane@host")

    assert pin_effect(VIEW, TO_FIRST, current).splitlines()[-1] == (
        "Replaces the pins of jane@host: 10.0.0.2 (version 7)."
    )
