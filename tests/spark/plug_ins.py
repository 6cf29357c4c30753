"""Classes that options name in tests: the fixture ``spark`` starts Spark with this module listed."""

from dataclasses import dataclass


class SecondBroker:
    """A selector of a user's own: all rows to one broker, one queue per length of the body."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, queues, message, arg):
        mine = [queue for queue in queues if queue.broker_name == self.name]
        return mine[len(message.body) % len(mine)]


@dataclass(frozen=True)
class AllToTheLast:
    """A strategy of a user's own: the last reader gets all queues."""

    name: str = "LAST"

    def allocate(self, group, client_id, queues, client_ids):
        return list(queues) if client_id == client_ids[-1] else []
