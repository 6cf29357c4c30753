"""Offsets that a stream was going to read and that are not, or no longer, there; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rmqtools import MessageQueue
from rmqtools.errors import DataLossError
from spark_connector.queue_json import place

REMEDY = "set option 'failOnDataLoss' to false to log this and to go on with what is there"


@dataclass(frozen=True, slots=True)
class Loss:
    """One queue's loss, in words, and where reading can go on; None: the queue is not there."""

    queue: MessageQueue
    text: str
    go_on_at: int | None


def find_losses(
    next_offsets: Mapping[MessageQueue, int],
    earliest: Mapping[MessageQueue, int],
    latest: Mapping[MessageQueue, int],
) -> list[Loss]:
    """Compare where a stream is with what the brokers hold.

    A queue that has shrunk (its topic was made anew, or a broker lost its last messages) goes on at its end.
    Source of the rule: DefaultMessageStore.getMessage (broker), OFFSET_TOO_SMALL and OFFSET_OVERFLOW_BADLY.

    Args:
        next_offsets: the next offset to read, of every queue read so far.
        earliest: the first offset stored, of every queue there is now.
        latest: the offset the next message gets, of the same queues.
    """
    losses = []
    for queue in sorted(next_offsets):
        next_offset = next_offsets[queue]
        if queue not in earliest:
            text = f"{place(queue)} is gone (topic deleted, broker gone, or no longer asked for): "
            losses.append(Loss(queue, f"{text}offsets from {next_offset} on cannot be read", None))
        elif next_offset < earliest[queue]:
            text = f"offsets [{next_offset}, {earliest[queue]}) of {place(queue)} have expired"
            losses.append(Loss(queue, text, earliest[queue]))
        elif next_offset > latest[queue]:
            text = f"{place(queue)} ends at {latest[queue]}, before offset {next_offset} that is next"
            losses.append(Loss(queue, text, latest[queue]))
    return losses


def refuse_losses(losses: Sequence[Loss]) -> None:
    """Fail the query over what ``failOnDataLoss`` calls loss.

    Raises:
        DataLossError: there is any; says which offsets, and the option.
    """
    if losses:
        raise DataLossError(f"{'; '.join(loss.text for loss in losses)}: {REMEDY}")
