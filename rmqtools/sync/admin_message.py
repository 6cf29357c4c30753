"""Blocking face of :mod:`rmqtools.aio.admin_message`."""

from rmqtools import aio
from rmqtools.model.block import CorruptBody
from rmqtools.model.group_view import MessageTrack
from rmqtools.model.message import MessageExt
from rmqtools.sync.loop import Bridge

_FOREVER_MS = 2**63 - 1  # Long.MAX_VALUE


class MessageAdmin:
    """The methods about single messages; :class:`rmqtools.sync.Admin` has them all."""

    _admin: aio.Admin
    _bridge: Bridge

    def view_message(self, offset_msg_id: str) -> MessageExt:
        """See :meth:`rmqtools.aio.Admin.view_message`."""
        return self._bridge.run(self._admin.view_message(offset_msg_id))

    def query_messages(
        self,
        topic: str,
        key: str,
        *,
        unique: bool = False,
        begin_ms: int = 0,
        end_ms: int = _FOREVER_MS,
        max_num: int = 64,
    ) -> list[MessageExt]:
        """See :meth:`rmqtools.aio.Admin.query_messages`."""
        return self._bridge.run(
            self._admin.query_messages(
                topic, key, unique=unique, begin_ms=begin_ms, end_ms=end_ms, max_num=max_num
            )
        )

    def query_all_messages(
        self,
        topic: str,
        key: str,
        *,
        unique: bool = False,
        begin_ms: int = 0,
        end_ms: int = _FOREVER_MS,
        corrupt_body: CorruptBody = "fail",
    ) -> list[MessageExt]:
        """See :meth:`rmqtools.aio.Admin.query_all_messages`."""
        return self._bridge.run(
            self._admin.query_all_messages(
                topic, key, unique=unique, begin_ms=begin_ms, end_ms=end_ms, corrupt_body=corrupt_body
            )
        )

    def fetch_message_track(self, message: MessageExt) -> list[MessageTrack]:
        """See :meth:`rmqtools.aio.Admin.fetch_message_track`."""
        return self._bridge.run(self._admin.fetch_message_track(message))
