"""The ASGI example on a scripted cluster, driven by its lifespan protocol."""

import asyncio
from typing import Any

from examples.asgi_service import Application
from tests.support.scripted_cluster import ScriptedCluster, stored


async def test_the_asgi_application_sends_between_startup_and_shutdown(monkeypatch):
    answers = []

    async with ScriptedCluster({"broker-a": stored}).serving() as cluster:
        monkeypatch.setenv("NAMESRV_ADDR", cluster.name_server)
        app, (told, said, request, sent) = Application("Orders"), [asyncio.Queue[Any]() for _ in range(4)]
        life = asyncio.create_task(app({"type": "lifespan"}, told.get, said.put))
        await told.put({"type": "lifespan.startup"})
        answers.append(await said.get())
        await request.put({"type": "http.request", "body": b"hel", "more_body": True})
        await request.put({"type": "http.request", "body": b"lo"})
        await app({"type": "http"}, request.get, sent.put)
        answers.extend([await sent.get(), await sent.get()])
        await told.put({"type": "lifespan.shutdown"})
        answers.append(await said.get())
        await life
        answers.extend(request.body for _, request in cluster.sends)
    assert [answer["type"] for answer in answers[:4]] == [
        "lifespan.startup.complete",
        "http.response.start",
        "http.response.body",
        "lifespan.shutdown.complete",
    ]
    assert answers[4:] == [b"hello"]
