"""Push and pull consumers: fetching, listeners, acknowledging, sending back.

- ``lifecycle`` starts and closes: a start that fails or is cancelled is closed, and closing runs its steps
  once, to the end.
- ``fetch_loop`` fetches each held queue in a task; ``puller`` and ``pop`` are its sources. ``fetch_policy``
  decides whether there is room, by the limits of ``policy.flow``.
- ``consume_concurrently``, ``consume_orderly`` and ``consume_pop`` say when a call may begin and what its
  result means. ``workers`` makes the calls of all three by ``listeners``; ``crossing`` carries results to the
  loop. For a pull consumer, messages go to ``hand_out``.
- ``send_back`` returns failed messages to their broker; ``acknowledge`` settles popped ones by
  ``settle_requests``.
"""
