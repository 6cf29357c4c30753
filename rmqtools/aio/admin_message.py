"""Finds single messages, and their consumption by groups; a part of :class:`rmqtools.aio.Admin`."""

from rmqtools.config.text import check_choice
from rmqtools.engine.admin.admin_message import MessageAdminCore
from rmqtools.model.block import CORRUPT_BODY_CHOICES, CorruptBody
from rmqtools.model.group_view import MessageTrack
from rmqtools.model.message import MessageExt

_FOREVER_MS = 2**63 - 1  # Long.MAX_VALUE


class MessageAdmin:
    """The methods about single messages; :class:`rmqtools.aio.Admin` has them all."""

    _messages: MessageAdminCore

    async def view_message(self, offset_msg_id: str) -> MessageExt:
        """Return the message with an offset message id: address and place in the commit log, as hex digits.

        Raises:
            MessageRejectedError: not 32 or 56 hex digits, or a port of 0; nothing was sent.
            BrokerError: there is no message at that place: it has expired, or the id is another broker's.
            RemotingConnectError: there is no broker at the address of the id.
        """
        return await self._messages.view_message(offset_msg_id)

    async def query_messages(
        self,
        topic: str,
        key: str,
        *,
        unique: bool = False,
        begin_ms: int = 0,
        end_ms: int = _FOREVER_MS,
        max_num: int = 64,
    ) -> list[MessageExt]:
        """Find messages of a topic in the brokers' key index, which lags behind sends by some milliseconds.

        Args:
            topic: the topic.
            key: one of the message's keys; with ``unique``, its unique key (the ``msg_id`` of its result).
            unique: whether ``key`` is a unique key.
            begin_ms: only messages stored at or after this time, in milliseconds since 1970.
            end_ms: only messages stored at or before this time.
            max_num: the most messages to return.

        Returns:
            The messages, oldest first; none if no broker has one.

        Raises:
            TopicNotFoundError: there is no such topic.

        Source of the rule: MQAdminImpl.queryMessage (Java client).
        """
        return await self._messages.query_messages(
            topic, key, unique=unique, begin_ms=begin_ms, end_ms=end_ms, max_num=max_num
        )

    async def query_all_messages(
        self,
        topic: str,
        key: str,
        *,
        unique: bool = False,
        begin_ms: int = 0,
        end_ms: int = _FOREVER_MS,
        corrupt_body: CorruptBody = "fail",
    ) -> list[MessageExt]:
        """Find every message of a topic with a key, however many there are; see :meth:`query_messages`.

        An answer of a broker has at most 64 messages, 32 by unique key, so older ones are asked for by time.

        Args:
            topic: the topic.
            key: one of the message's keys; with ``unique``, its unique key.
            unique: whether ``key`` is a unique key.
            begin_ms: only messages stored at or after this time, in milliseconds since 1970.
            end_ms: only messages stored at or before this time.
            corrupt_body: handling of a message whose body cannot be read, see :meth:`read_messages`.

        Returns:
            The messages, by broker, queue and offset.

        Raises:
            ConfigError: a broker has so many messages with this key in one second that it cannot return all.
            TopicNotFoundError: there is no such topic.
            CorruptBodyError: a body that cannot be read; the text names queue and queue offset.
        """
        check_choice("corrupt_body", corrupt_body, CORRUPT_BODY_CHOICES)
        return await self._messages.query_all_messages(
            topic, key, unique=unique, begin_ms=begin_ms, end_ms=end_ms, corrupt_body=corrupt_body
        )

    async def fetch_message_track(self, message: MessageExt) -> list[MessageTrack]:
        """Return whether each group of a message's topic has consumed it, by the groups' consumer offsets.

        An offset shows what was committed: a message whose listener failed counts as consumed, because its
        group has it in the retry topic. Groups that pop have no offset to compare.

        Args:
            message: from :meth:`view_message` or :meth:`query_messages`; ``broker_name`` must be set.
        """
        return await self._messages.fetch_message_track(message)
