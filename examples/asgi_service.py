"""A web service that sends: a plain ASGI application whose lifespan starts and closes the producer.

NAMESRV_ADDR=127.0.0.1:9876 uvicorn examples.asgi_service:app     # or any other ASGI server
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from rmqtools import Message, ProducerConfig
from rmqtools.aio import Producer

Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]


class Application:
    """``POST`` with any body sends it to a topic; the answer is the message's id."""

    def __init__(self, topic: str = "Example") -> None:
        self._topic = topic
        self._producer: Producer | None = None

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        """Answer one call of ASGI: one for each request, and one for the lifespan of a worker."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._answer(receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Start before the first request, close after the last: the producer belongs to the worker's loop."""
        await receive()
        async with Producer(ProducerConfig(group="web")) as self._producer:
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, receive: Receive, send: Send) -> None:
        assert self._producer is not None, "the server does not run the lifespan: switch it on"
        body, more = b"", True
        while more:
            event = await receive()
            body, more = body + event.get("body", b""), event.get("more_body", False)
        result = await self._producer.send(Message(self._topic, body))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": result.msg_id.encode()})


app = Application()
