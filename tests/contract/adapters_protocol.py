"""Adapters of the vectors about commands, bodies, properties and ids."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from rmqtools.model import group, route
from rmqtools.model.codes import LanguageCode, RequestCode, SerializeType
from rmqtools.protocol.messages.hosts import decode_host, encode_host
from rmqtools.protocol.messages.message_id import (
    UniqueIdGenerator,
    format_offset_msg_id,
    month_bounds_ms,
    parse_offset_msg_id,
)
from rmqtools.protocol.messages.properties import format_properties, parse_properties
from rmqtools.protocol.messages.stored import decode_messages
from rmqtools.protocol.wire.bodies import format_body, parse_body, parse_json
from rmqtools.protocol.wire.command import (
    RemotingCommand,
    decode_command,
    encode_json_header,
)
from rmqtools.protocol.wire.framing import Frame, FrameDecoder, encode_frame
from tests.contract.rocketmq_header import encode_rocketmq_header
from tests.contract.vector_spec import Case, Spec, null_if_empty, outcome

_NOW = 1_700_000_000_000
HEADER_ENCODERS: Mapping[SerializeType, Callable[[RemotingCommand], bytes]] = {
    SerializeType.JSON: encode_json_header,
    SerializeType.ROCKETMQ: encode_rocketmq_header,
}


def frame_of(text: str) -> Frame:
    """The one frame of a hex text."""
    (frame,) = FrameDecoder().feed(bytes.fromhex(text))
    return frame


def frame_hex(made: RemotingCommand) -> str:
    """A frame with the header form asked for, whether or not the code fits: Java cuts it."""
    header = HEADER_ENCODERS[made.serialize_type](made)
    return encode_frame(made.serialize_type, header, made.body).hex()


def show_command(made: RemotingCommand) -> Case:
    """A command as the vectors write it."""
    return {
        "code": made.code,
        "language": None if made.language is None else made.language.name,
        "version": made.version,
        "opaque": made.opaque,
        "flag": made.flag,
        "remark": made.remark,
        "extFields": dict(made.ext_fields),
        "body": made.body.hex(),
        "serializeType": made.serialize_type.name,
        "isResponse": made.is_response,
        "isOneway": made.is_oneway,
    }


def command(case: Case) -> Case:
    given = case["in"]
    made = RemotingCommand(
        code=given["code"],
        language=LanguageCode[given["language"]],
        version=given["version"],
        opaque=given["opaque"],
        flag=given["flag"],
        remark=given["remark"],
        ext_fields=dict(given["extFields"] or ()),
        body=bytes.fromhex(given["body"] or ""),
        serialize_type=SerializeType[given["serializeType"]],
    )
    frame = frame_hex(made)
    return {"frame": frame, "decoded": outcome(lambda: show_command(decode_command(frame_of(frame))))}


def command_decode(case: Case) -> Case:
    return outcome(lambda: show_command(decode_command(frame_of(case["frame"]))))


def json_body(case: Case) -> Case:
    body_class = getattr(group, case["class"], None) or getattr(route, case["class"])
    return {"json": format_body(parse_body(body_class, case["json"].encode())).decode()}


def properties_parse(case: Case) -> Case:
    return {"map": parse_properties(case["text"])}


def properties_format(case: Case) -> Case:
    return {"text": format_properties(dict(case["pairs"] or ()))}


def host_text(address: str) -> str:
    """``7f000001:10911`` -> ``127.0.0.1:10911``."""
    digits, _, port = address.partition(":")
    return decode_host(bytes.fromhex(digits) + int(port).to_bytes(4))


def host_hex(host: str) -> str:
    """``127.0.0.1:10911`` -> ``7f000001:10911``."""
    data = encode_host(host)
    return f"{data[:-4].hex()}:{int.from_bytes(data[-4:])}"


def message_id_create(case: Case) -> Case:
    msg_id = format_offset_msg_id(host_text(case["address"]), case["offset"])
    host, offset = parse_offset_msg_id(msg_id)
    return {"msgId": msg_id, "decodedAddress": host_hex(host), "decodedOffset": offset}


def message_id_decode(case: Case) -> Case:
    def decode() -> Case:
        host, offset = parse_offset_msg_id(case["msgId"])
        return {"address": host_hex(host), "offset": offset}

    return outcome(decode)


def unique_id(case: Case) -> Case:
    """As many ids of one millisecond as the counter says, and one more."""
    ip, _ = host_text(f"{case['ip']}:0").rsplit(":", 1)
    ids = UniqueIdGenerator(ip.strip("[]"), case["pid"], case["loaderHash"])
    now = month_bounds_ms(_NOW)[0] + case["millisSinceMonthStart"]
    return {"id": [ids.next(now) for _ in range(case["counter"] + 1)][-1]}


BODY_OF_CODE: Mapping[int, type] = {
    RequestCode.GET_ROUTEINFO_BY_TOPIC: route.TopicRouteData,
    RequestCode.LOCK_BATCH_MQ: group.LockBatchResponseBody,
    RequestCode.GET_TOPIC_STATS_INFO: group.TopicStatsTable,
    RequestCode.GET_CONSUME_STATS: group.ConsumeStats,
    RequestCode.QUERY_ASSIGNMENT: group.QueryAssignmentResponseBody,
}


def server_capture(case: Case) -> Case:
    asked, answered = (decode_command(frame_of(case[key])) for key in ("request", "response"))
    text: str | None = None
    if asked.code in BODY_OF_CODE and answered.body:
        text = format_body(parse_body(BODY_OF_CODE[asked.code], answered.body)).decode()
    elif answered.body:
        decode_messages(answered.body)
    header = encode_json_header(answered).decode()
    return {"code": asked.code, "responseHeaderText": header, "responseBodyText": text}


def server_texts(answer: Case) -> Case:
    """Texts as what they say: whether keys are quoted and a null is written depends on what was asked."""
    header, body = answer["responseHeaderText"], answer["responseBodyText"]
    fields = null_if_empty("extFields")(parse_json(header.encode()))
    parsed: Any = None if body is None else parse_json(body.encode())
    return answer | {"responseHeaderText": fields, "responseBodyText": parsed}


def frame_parts(text: str) -> Any:
    """Form, header and body of a frame; a JSON header as what it says, no extFields like empty ones."""
    frame = frame_of(text)
    fields = json.loads(frame.header) if frame.serializer == SerializeType.JSON else frame.header.hex()
    return [frame.serializer, null_if_empty("extFields")(fields), frame.body.hex()]


def command_answer(answer: Case) -> Any:
    answer = null_if_empty("extFields", "body")(answer)
    return answer | {"frame": frame_parts(answer["frame"])}


SPECS: Mapping[str, tuple[Spec, ...]] = {
    "command": (Spec(inputs=("in",), adapter=command, normal=command_answer),),
    "command_decode": (
        Spec(
            inputs=("frame",),
            adapter=command_decode,
            unpinned=("value.opaque",),
            normal=null_if_empty("extFields", "body"),
        ),
    ),
    "json_body": (Spec(inputs=("class", "json"), adapter=json_body, both=("json",), labels=("strictJson",)),),
    "properties": (
        Spec(op="parse", inputs=("text",), adapter=properties_parse),
        Spec(op="format", inputs=("pairs",), adapter=properties_format),
    ),
    "message_id": (
        Spec(op="create", inputs=("address", "offset"), adapter=message_id_create),
        Spec(op="decode", inputs=("msgId",), adapter=message_id_decode),
    ),
    "unique_id": (
        Spec(
            inputs=("ip", "pid", "loaderHash", "millisSinceMonthStart", "counter"),
            adapter=unique_id,
            labels=(),
        ),
    ),
    "server_capture": (
        Spec(
            inputs=("request", "response"),
            adapter=server_capture,
            labels=("what", "to"),
            normal=server_texts,
        ),
    ),
}
