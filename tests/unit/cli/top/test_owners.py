from rmqtools.cli.top.owners import COLOURS, Cell, Letters, cells, grid_lines, owners_of
from rmqtools.group import GroupMember, GroupView, QueueProgress
from rmqtools.model.queue import MessageQueue


def queues(count, topic="orders", broker="broker-a"):
    return [MessageQueue(topic, broker, index) for index in range(count)]


def view(progress, *members):
    return GroupView(
        group="g",
        members=members,
        progress={queue: QueueProgress(max_offset=0, consumer_offset=0) for queue in progress},
    )


def member(client_id, *owned, error=None):
    return GroupMember(client_id=client_id, queues=owned, error=error)


def marks(group, before=None):
    letters = Letters()
    letters.learn(each.client_id for each in group.members)
    owners = owners_of(group)
    return "".join(cell.mark for cell in cells(group, owners, before or {}, letters).values())


def test_every_queue_has_the_letter_of_its_owner_or_a_sign_of_its_problem():
    a, b, c, d = queues(4)

    assert marks(view([a, b, c, d], member("x", a, c), member("y", b, c))) == "AB!."
    assert marks(view([a, b], member("x", a), member("y", error="silent"))) == "A?"


def test_queues_of_the_retry_topic_are_not_shown():
    own, retry = MessageQueue("orders", "broker-a", 0), MessageQueue("%RETRY%g", "broker-a", 0)

    assert list(owners_of(view([own, retry], member("x", own, retry)))) == [own]


def test_a_queue_with_another_owner_than_before_has_moved_and_a_new_one_has_not():
    a, b, c = queues(3)
    letters = Letters()
    letters.learn(["x", "y"])
    before = {a: ("x",), b: ("x",)}
    owners = {a: ("x",), b: ("y",), c: ("y",)}

    assert cells(view([a, b, c]), owners, before, letters) == {
        a: Cell("A", COLOURS[0]),
        b: Cell("B", COLOURS[1], moved=True),
        c: Cell("B", COLOURS[1]),
    }


def test_a_member_keeps_its_letter_when_others_come_and_go():
    letters = Letters()
    letters.learn(["m"])
    letters.learn(["a", "m"])

    assert (letters.letter("m"), letters.letter("a")) == ("A", "B")


def test_letters_and_colours_repeat_after_the_last():
    letters = Letters()
    letters.learn(map(str, range(63)))

    assert [letters.letter(name) for name in ("0", "25", "26", "61", "62")] == ["A", "Z", "a", "9", "A"]


def text(lines):
    return [head + "".join(cell.mark for cell in row) for head, row in lines]


def test_a_row_is_a_topic_on_a_broker_and_wraps_at_tens_with_the_first_queue_id():
    table = {queue: Cell("A") for queue in [*queues(2, broker="b1"), *queues(25, broker="b2")]}

    assert text(grid_lines(table, 32)) == [
        "orders b1  0 AA",
        "orders b2  0 AAAAAAAAAA",
        "          10 AAAAAAAAAA",
        "          20 AAAAA",
    ]


def test_names_that_leave_no_room_stand_on_a_line_of_their_own():
    table = {queue: Cell("A") for queue in queues(2, topic="a-very-long-name-of-a-topic")}

    assert text(grid_lines(table, 30)) == ["a-very-long-name-of-a-topic broker-a", " 0 AA"]


def test_ten_thousand_queues_are_all_laid_out():
    table = {queue: Cell("A") for broker in ("a", "b") for queue in queues(5000, broker=broker)}

    lines = grid_lines(table, 78)

    assert sum(len(row) for _, row in lines) == 10_000
    assert max(len(line) for line in text(lines)) <= 78
