"""Sends of messages that are encoded already, for ``rmqtools.arrow``."""

from collections.abc import Sequence

from rmqtools.config import ProducerConfig
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.producer.send_many import ManySender, ParcelLine
from rmqtools.errors import MessageRejectedError, SendError
from rmqtools.model.parcel import MsgIds, Parcel, ParcelResult
from rmqtools.policy.validate import check_message
from rmqtools.protocol.messages.message_id import UniqueIdGenerator


class ParcelSends:
    """The sends of parcels of one producer."""

    def __init__(
        self,
        client: ClientCore,
        config: ProducerConfig,
        many: ManySender,
        ids: UniqueIdGenerator,
        *,
        are_traced: bool,
    ) -> None:
        self._client = client
        self._config = config
        self._many = many
        self._ids = ids
        self._are_traced = are_traced

    def parcel_line(self) -> ParcelLine:
        """Return a line: calls of :meth:`send_parcels` with it behave like one call with all their parcels.

        The calls may overlap and share ``max_in_flight``. After a failed or cancelled call no parcel of the
        line is started any more. A call refused with ``MessageRejectedError`` does not affect the line.
        """
        return self._many.parcel_line()

    async def send_parcels(
        self, parcels: Sequence[Parcel], *, line: ParcelLine | None = None, timeout: float | None = None
    ) -> list[ParcelResult | SendError]:
        """Send encoded messages, one request per parcel, as ``Producer.send_many`` sends its batches.

        For code that makes batches without a Message per row (``rmqtools.arrow``): only single messages are
        checked. After the first parcel that cannot be sent no further ones are started.

        Args:
            parcels: parcels of one queue, in their order in the queue. Parcels of several queues are sent
                concurrently if they alternate.
            line: of :meth:`parcel_line`, for several calls; None: one for this call.
            timeout: seconds for all attempts of one parcel; None: ``send_timeout``.

        Returns:
            For each parcel its place in the queue, or its error.

        Raises:
            MessageRejectedError: a single message cannot be sent, or traces are wanted; nothing was sent.
            TopicNotFoundError, PermissionDeniedError, RemotingConnectError: there is no queue to send to;
                nothing was sent.
        """
        self._client.check_started()
        for parcel in parcels:
            if parcel.message is not None:
                check_message(parcel.message, self._config.max_message_bytes)
        if self._are_traced:
            raise MessageRejectedError("parcels cannot be traced: set enable_trace=False, or use send_many")
        return await self._many.send_parcels(parcels, line, timeout)

    async def reserve_msg_ids(self, count: int) -> MsgIds:
        """Reserve unique ids for messages that are encoded elsewhere, at most 65536.

        Source of the rule: MessageClientIDSetter.createUniqID (Java client).
        """
        return self._ids.take(count, self._client.clock.now_ms())
