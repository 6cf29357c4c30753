"""The one engine: asyncio, sockets, timers. Both faces run its coroutines."""
