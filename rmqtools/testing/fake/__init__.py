"""A RocketMQ cluster in this process, for tests.

Intended differences from real brokers 5.5.0:

- Acknowledged messages can be read at once; a real broker's queue shows a message a moment later.
- Delays are multiplied by ``delay_scale``, which is 0 by default.
- A long poll ends at its timeout; real brokers check every 5 s.
- Half messages are checked when a test requests it (``check_transactions``), not every 30 s; none is dropped.
- A reply is acknowledged as soon as it is pushed; a real broker waits for the requesting client.
- Slaves have their master's messages, topics, groups and offsets at once (real ones all but the messages
  within a minute), and serve reads (real ones if ``slaveReadEnable`` is set).
- Popped messages whose time is over come again at once; a real broker needs some seconds.
- Messages with a time of delivery come at once, and cannot be recalled.
- Brokers ask no member for a report: they know only those that a test gives (``add_member``).
- There are no SQL92 filters (as in a broker with default settings), no queues shared out by brokers, no
  static topics and no access control. A request with an unknown code is answered REQUEST_CODE_NOT_SUPPORTED.

The tests of ``tests/behaviour`` run against this cluster and against a real one.
"""

from rmqtools.testing.fake.cluster import FakeCluster
from rmqtools.testing.fake.faults import Fault, Reaction
from rmqtools.testing.fake.messages import encode_stored, stored_message
from rmqtools.testing.fake.servers import NAME_SERVER

__all__ = ["NAME_SERVER", "FakeCluster", "Fault", "Reaction", "encode_stored", "stored_message"]
