"""Adapters of the vectors about messages: stored, in a pull, in a batch, compressed."""

from collections.abc import Mapping

from rmqtools.model.message import MessageExt
from rmqtools.protocol.messages.batch import decode_batch, encode_batch
from rmqtools.protocol.messages.compression import CompressionType, compress, decompress
from rmqtools.protocol.messages.properties import format_properties
from rmqtools.protocol.messages.stored import (
    body_crc,
    check_body,
    decode_message,
    decode_messages,
    encode_message,
)
from tests.contract.adapters_protocol import host_hex, host_text
from tests.contract.vector_spec import Case, Spec, null_if_empty, or_none, outcome


def show_message(message: MessageExt) -> Case:
    """A message as the vectors write it; they decoded as a broker does, so both ids are the offset id."""
    return {
        "storeSize": message.store_size_bytes,
        "bodyCRC": message.body_crc,
        "queueId": message.queue_id,
        "flag": message.flag,
        "queueOffset": message.queue_offset,
        "commitLogOffset": message.commit_log_offset,
        "sysFlag": message.sys_flag,
        "bornTimestamp": message.born_timestamp_ms,
        "bornHost": host_hex(message.born_host),
        "storeTimestamp": message.store_timestamp_ms,
        "storeHost": host_hex(message.store_host),
        "reconsumeTimes": message.reconsume_times,
        "preparedTransactionOffset": message.prepared_transaction_offset,
        "topic": message.topic,
        "body": message.body.hex(),
        "properties": dict(message.properties),
        "msgId": message.offset_msg_id,
        "clientMsgId": message.offset_msg_id,
    }


def make_message(given: Case, properties: list[list[str]]) -> MessageExt:
    """A message from the vectors' writing."""
    return MessageExt(
        topic=given["topic"],
        queue_id=given["queueId"],
        queue_offset=given["queueOffset"],
        commit_log_offset=given["commitLogOffset"],
        body=bytes.fromhex(given["body"] or ""),
        properties=dict(properties),
        flag=given["flag"],
        sys_flag=given["sysFlag"],
        born_timestamp_ms=given["bornTimestamp"],
        born_host=host_text(given["bornHost"]),
        store_timestamp_ms=given["storeTimestamp"],
        store_host=host_text(given["storeHost"]),
        reconsume_times=given["reconsumeTimes"],
        prepared_transaction_offset=given["preparedTransactionOffset"],
        body_crc=given["bodyCRC"],
    )


def message_stored(case: Case) -> Case:
    encoded = encode_message(make_message(case["message"], case["propertiesInOrder"] or []))
    return {"bytes": encoded.hex(), "decode": show_message(decode_message(encoded))}


def message_stored_compressed(case: Case) -> Case:
    return {"decode": show_message(decode_message(bytes.fromhex(case["bytes"])))}


def message_decode(case: Case) -> Case:
    data = bytes.fromhex(case["bytes"])
    decoded, raw = or_none(decode_message, data), or_none(decode_message, data, decompress_body=False)
    return {
        "decode": decoded and show_message(decoded),
        "decodeKeepCompressed": raw and show_message(raw),
        "decodeCheckCrc": raw is not None and check_body(raw, raw.body),
        "decodeProperties": outcome(lambda: dict(decode_message(data).properties)),
    }


def message_decodes(case: Case) -> Case:
    return {"messages": [show_message(message) for message in decode_messages(bytes.fromhex(case["bytes"]))]}


def make_batch(given: list[Case]) -> bytes:
    """A batch body from the vectors' writing."""
    return b"".join(
        encode_batch(
            [
                (
                    message["flag"],
                    bytes.fromhex(message["body"] or ""),
                    format_properties(dict(message["properties"] or ())).encode(),
                )
            ]
        )
        for message in given
    )


def message_batch(case: Case) -> Case:
    data = make_batch(case["messages"])
    decoded = [
        {"flag": message.flag, "body": message.body.hex(), "properties": message.properties}
        for message in decode_batch(data)
    ]
    return {"bytes": data.hex(), "decoded": decoded, "count": len(decoded)}


def compression(case: Case) -> Case:
    kind = CompressionType[case["type"]]
    plain = decompress(kind, bytes.fromhex(case["compressed"]))
    again = decompress(kind, compress(kind, plain))
    return {
        "typeValue": kind.value,
        "plain": plain.hex(),
        "crc32": body_crc(plain),
        "decompresses": again == plain,
    }


_empty = null_if_empty("properties", "body", "value")


_LABELS = ("id", "compression")

SPECS: Mapping[str, tuple[Spec, ...]] = {
    "compression": (Spec(inputs=("type", "compressed"), adapter=compression),),
    "message_batch": (Spec(inputs=("messages",), adapter=message_batch, normal=_empty),),
    "message_stored": (
        Spec(
            inputs=("message", "propertiesInOrder", "exactBytes"),
            adapter=message_stored,
            labels=_LABELS,
            normal=_empty,
        ),
        Spec(  # other compressed bytes than Java's are legal
            inputs=("bytes",),
            adapter=message_stored_compressed,
            labels=(*_LABELS, "message", "propertiesInOrder"),
            normal=_empty,
        ),
    ),
    "message_decode": (Spec(inputs=("bytes",), adapter=message_decode, normal=_empty),),
    "message_decodes": (Spec(inputs=("bytes",), adapter=message_decodes, normal=_empty),),
}
