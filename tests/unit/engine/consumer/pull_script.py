"""Scripted answers to the pulls of a :class:`Scene`, and the requested offsets."""

from collections.abc import Callable
from typing import Any

from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.protocol.messages.stored import encode_message
from rmqtools.protocol.wire.command import RemotingCommand, response
from tests.unit.engine.consumer.push_scene import Scene, stored, until

Pull = Callable[[RemotingCommand], RemotingCommand | None]
PULL = RequestCode.PULL_MESSAGE


def answered(
    code: int, next_offset: int, *, body: bytes = b"", suggest: int = 0, stored: tuple[int, int] = (0, 1000)
) -> RemotingCommand:
    fields = {
        "nextBeginOffset": str(next_offset),
        "minOffset": str(stored[0]),
        "maxOffset": str(stored[1]),
        "suggestWhichBrokerId": str(suggest),
    }
    return response(code, 0, ext_fields=fields, body=body)


def found(*offsets: int, topic: str = "T", tags: str | None = None, **settings: Any) -> RemotingCommand:
    body = b"".join(encode_message(stored(offset, topic=topic, tags=tags)) for offset in offsets)
    return answered(ResponseCode.SUCCESS, offsets[-1] + 1, body=body, **settings)


def script(*answers: RemotingCommand | Pull | None, code: RequestCode = PULL) -> Pull:
    """Pulls (or ``code``) are answered one after the other, then by silence; everything else by success."""
    left = list(answers)

    def answer(request: RemotingCommand) -> RemotingCommand | None:
        if request.code != code:
            return response(ResponseCode.SUCCESS, 0)
        following = left.pop(0) if left else None
        return following(request) if callable(following) else following

    return answer


def asked_offsets(scene: Scene) -> list[int]:
    return [int(fields["queueOffset"]) for fields in scene.asked(PULL)]


async def pulls(scene: Scene, count: int) -> None:
    """Fetch until the broker has been asked so often."""
    if not scene.puller.running:
        scene.puller.start(scene.held)
    await until(lambda: len(scene.asked(PULL)) >= count)
