"""Replies to requests: a broker pushes them to the requesting client, and stores them.

Source of the rules: ReplyMessageProcessor (broker 5.5.0). There the answer waits until the client has
accepted the reply.
"""

from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.message_const import PROPERTY_MESSAGE_REPLY_TO_CLIENT, PROPERTY_PUSH_REPLY_TIME
from rmqtools.protocol.headers.codec import decode_header
from rmqtools.protocol.headers.send import ReplyMessageRequestHeader, SendMessageRequestHeaderV2
from rmqtools.protocol.messages.properties import format_properties, parse_properties
from rmqtools.protocol.wire.command import RemotingCommand, encode_command, request
from rmqtools.testing.fake.members import Members
from rmqtools.testing.fake.sends import Sends
from rmqtools.testing.fake.server import Peer
from rmqtools.testing.fake.state import Handlers, State, refused


class Replies:
    """Pushes replies to requesters."""

    def __init__(self, state: State, members: Members, sends: Sends) -> None:
        self._state = state
        self._members = members
        self._sends = sends
        self.handlers: Handlers = {RequestCode.SEND_REPLY_MESSAGE_V2: self._reply}

    def _reply(self, command: RemotingCommand, peer: Peer) -> RemotingCommand:
        header = decode_header(SendMessageRequestHeaderV2, command.ext_fields)
        properties = parse_properties(header.properties)
        client_id = properties.get(PROPERTY_MESSAGE_REPLY_TO_CLIENT, "")
        asker = self._members.client(client_id)
        answer = self._sends.send(command, peer)
        if answer.code != ResponseCode.SUCCESS:
            return answer
        if asker is None:
            remark = f"push reply message fail, channel of <{client_id}> not found."
            return refused(ResponseCode.SYSTEM_ERROR, remark)
        asker.write(encode_command(self._push(header, properties, command.body, peer)))
        return answer

    def _push(
        self, header: SendMessageRequestHeaderV2, properties: dict[str, str], body: bytes, peer: Peer
    ) -> RemotingCommand:
        now_ms = self._state.timers.now_ms()
        pushed = ReplyMessageRequestHeader(
            producer_group=header.producer_group,
            topic=header.topic,
            default_topic=header.default_topic,
            default_topic_queue_nums=header.default_topic_queue_nums,
            queue_id=header.queue_id,
            sys_flag=header.sys_flag,
            born_timestamp=header.born_timestamp,
            flag=header.flag,
            properties=format_properties({**properties, PROPERTY_PUSH_REPLY_TIME: str(now_ms)}),
            reconsume_times=header.reconsume_times,
            born_host=peer.addr,
            store_host=self._state.addr,
            store_timestamp=now_ms,
        )
        return request(pushed, body)
