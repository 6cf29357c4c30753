"""Administration of a cluster: all its parts in one class."""

from collections.abc import AsyncIterator, Mapping

from rmqtools.config import ClientConfig
from rmqtools.config.client import check_config
from rmqtools.engine.admin.checks import CheckAdmin
from rmqtools.engine.admin.drains import DrainAdmin
from rmqtools.engine.admin.stories import StoryAdmin
from rmqtools.engine.admin.topics import TopicAdmin
from rmqtools.engine.blocking_form import CLOSE_NOTE, START_NOTE, blocking
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.connection.connected import Connected
from rmqtools.engine.reading.client import Client
from rmqtools.engine.reading.read_messages import read_messages
from rmqtools.errors import RemotingError
from rmqtools.model.block import CorruptBody
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import QueueRange


class Admin(TopicAdmin, StoryAdmin, DrainAdmin, CheckAdmin, Connected):
    """Queries and changes of topics, groups and brokers.

    Made from settings, or on a running :class:`Client`, which stays open when this is closed.

    Every method raises ``RemotingError`` if no answer comes within ``request_timeout`` and
    ``BrokerError`` if a server refuses.

    Args:
        config: the settings, or the client.
        partial: leave masters that do not answer out of the results of requests that only read, instead of
            raising: one hung broker does not hide the rest. :attr:`missing_brokers` names them. This object
            does not ask them again: for that, make another one, on the same client. If no master answers,
            or a change does not reach every master, the error is raised.
    """

    __module__ = "rmqtools.aio"
    _checks_arguments = True

    def __init__(self, config: ClientConfig | Client, *, partial: bool = False) -> None:
        self._host = config if isinstance(config, Client) else None
        if self._host is None:
            check_config(type(self).__name__, config, ClientConfig)
        super().__init__(
            config._client if isinstance(config, Client) else ClientCore(config), partial=partial
        )

    @property
    @blocking("direct")
    def missing_brokers(self) -> Mapping[str, RemotingError]:
        """The masters that the results lack, by name, with the first error of each.

        Always empty without ``partial``: such an error is raised then.
        """
        return dict(self._masters.missing)

    @blocking("base", note=START_NOTE)
    async def start(self) -> None:
        """Make the methods usable. Connections are made when needed."""
        if self._host is None:
            self._client.start()

    @blocking("base", note=CLOSE_NOTE)
    async def close(self) -> None:
        """Close the connections, unless they are another client's. Every call waits until that is done."""
        if self._host is None:
            await self._client.close()

    def read_messages(
        self, range_: QueueRange, *, corrupt_body: CorruptBody = "fail"
    ) -> AsyncIterator[list[MessageExt]]:
        """Read exactly the messages of a range, in order; see :meth:`rmqtools.aio.Client.read_messages`.

        Yields:
            Up to 256 messages at a time, in the order of their offsets. Their topics include the
            namespace, as on the server.

        Raises:
            DataLossError: part of the range has expired or was never written; the text names the offsets.
            TopicNotFoundError, PermissionDeniedError: there is no such topic, or it may not be read.
            CorruptBodyError: a body that cannot be read; the text names queue and queue offset.
        """
        self._client.check_started()
        return read_messages(
            self._client, range_, max_messages=256, max_bytes=1024 * 1024, corrupt_body=corrupt_body
        )
