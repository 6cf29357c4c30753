"""One member of a consumer group: its membership, the queues it holds, its offsets.

- ``member`` has settings, connections, names, subscriptions and the offset store, which all consumers share.
- ``ownership`` keeps the member in its group: ``membership`` sends heartbeats and asks for the member list,
  ``rounds`` decides when to rebalance, ``live_strategy`` reads the pins of ``pin_store``, ``rebalance``
  compares the share with the queues held. If brokers distribute the queues, ``pop_assignment`` asks them for
  the share.
- ``hold_and_release`` owns the held queues. Taking a queue, moving to another offset, releasing and closing
  all go through it, and it informs the registered parts: fetchers, consumptions, the poll buffer.
"""
