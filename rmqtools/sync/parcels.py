"""Sends encoded messages of ``rmqtools.arrow`` through a producer. Internal: users send messages."""

from collections.abc import Sequence
from concurrent.futures import Future

from rmqtools.engine.producer.producer import ProducerCore
from rmqtools.engine.producer.send_many import ParcelLine
from rmqtools.errors import SendError
from rmqtools.model.parcel import MsgIds, Parcel, ParcelResult
from rmqtools.sync.loop import Bridge


class ParcelSender:
    """Sends parcels through a blocking producer's connections."""

    def __init__(self, core: ProducerCore, bridge: Bridge) -> None:
        self._core = core
        self._bridge = bridge

    def parcel_line(self) -> ParcelLine:
        """See :meth:`ProducerCore.parcel_line`."""
        return self._core.parcel_line()

    def send_parcels_async(
        self, parcels: Sequence[Parcel], *, line: ParcelLine | None = None, timeout: float | None = None
    ) -> Future[list[ParcelResult | SendError]]:
        """See :meth:`ProducerCore.send_parcels`; the future gives the results or raises the error."""
        return self._bridge.submit(self._core.send_parcels(parcels, line=line, timeout=timeout))

    def reserve_msg_ids(self, count: int) -> MsgIds:
        """See :meth:`ProducerCore.reserve_msg_ids`."""
        return self._bridge.run(self._core.reserve_msg_ids(count))
