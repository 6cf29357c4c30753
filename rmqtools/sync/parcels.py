"""Sends encoded messages of ``rmqtools.arrow`` through a producer. Internal: users send messages."""

from collections.abc import Sequence
from concurrent.futures import Future

from rmqtools.engine.producer.parcel_sends import ParcelSends
from rmqtools.engine.producer.send_many import ParcelLine
from rmqtools.errors import SendError
from rmqtools.model.parcel import MsgIds, Parcel, ParcelResult
from rmqtools.sync.loop import Bridge


class ParcelSender:
    """Sends parcels through a blocking producer's connections."""

    def __init__(self, sends: ParcelSends, bridge: Bridge) -> None:
        self._sends = sends
        self._bridge = bridge

    def parcel_line(self) -> ParcelLine:
        """See :meth:`ParcelSends.parcel_line`."""
        return self._sends.parcel_line()

    def send_parcels_async(
        self, parcels: Sequence[Parcel], *, line: ParcelLine | None = None, timeout: float | None = None
    ) -> Future[list[ParcelResult | SendError]]:
        """See :meth:`ParcelSends.send_parcels`; the future gives the results or raises the error."""
        return self._bridge.submit(lambda: self._sends.send_parcels(parcels, line=line, timeout=timeout))

    def reserve_msg_ids(self, count: int) -> MsgIds:
        """See :meth:`ParcelSends.reserve_msg_ids`."""
        return self._bridge.run(lambda: self._sends.reserve_msg_ids(count))
