"""Adapters of the vectors about plain values: constants, flags, names, queues."""

from collections.abc import Callable, Mapping
from enum import Enum
from types import ModuleType
from typing import Any

from rmqtools.model import codes, message_const, names, sys_flag
from rmqtools.model.queue import MessageQueue
from rmqtools.model.route import MASTER_ID, Perm
from rmqtools.protocol.messages import stored as messages
from rmqtools.protocol.messages.compression import CompressionType
from rmqtools.protocol.messages.properties import NAME_VALUE_SEPARATOR, PROPERTY_SEPARATOR
from tests.contract.vector_spec import Case, Spec, outcome, show_queues


def members(enum: type[Enum]) -> dict[str, Any]:
    """Names and numbers of an enumeration, aliases too."""
    return {name: member.value for name, member in enum.__members__.items()}


def public_constants(module: ModuleType, kind: type) -> dict[str, Any]:
    """Upper-case names of a module whose values are of ``kind``."""
    named = {name: value for name, value in vars(module).items() if name.isupper() and name[0] != "_"}
    return {name: value for name, value in named.items() if type(value) is kind}


def names_of_mix_all() -> dict[str, Any]:
    """Our names without those that Java has in its ProxyConfig and its TopicValidator."""
    found = public_constants(names, str)
    of_other_classes = ("HEARTBEAT_SYNCER_TOPIC", "SCHEDULE_TOPIC", "HALF_TOPIC")
    return {name: value for name, value in found.items() if name not in of_other_classes}


NEWER_REQUEST_CODES: Mapping[str, str] = {}
"""Request codes that the vectors' Java, 5.5.0, lacks, with the first version of each: {"X": "5.6.0"}."""


def request_codes(newer: Mapping[str, str] = NEWER_REQUEST_CODES) -> dict[str, int]:
    """Our request codes without the newer ones."""
    return {name: code for name, code in members(codes.RequestCode).items() if name not in newer}


def response_codes(*, of_remoting: bool) -> dict[str, int]:
    """Java splits the codes: 0 to 4 are the remoting layer's."""
    return {
        name: code for name, code in members(codes.ResponseCode).items() if (0 <= code <= 4) is of_remoting
    }


def permissions() -> dict[str, int]:
    """Each bit by its value and by its place."""
    values = {f"PERM_{perm.name}": perm.value for perm in Perm}
    return values | {f"INDEX_PERM_{perm.name}": perm.value.bit_length() - 1 for perm in Perm}


def decoder_constants() -> dict[str, int]:
    """Positions and magic numbers; Java keeps the separators as numbers and one position twice."""
    found = {name: value for name, value in public_constants(messages, int).items() if name in _DECODER_NAMES}
    separators = {
        "NAME_VALUE_SEPARATOR": ord(NAME_VALUE_SEPARATOR),
        "PROPERTY_SEPARATOR": ord(PROPERTY_SEPARATOR),
    }
    return found | separators | {"PHY_POS_POSITION": messages.MESSAGE_PHYSIC_OFFSET_POSITION}


_DECODER_NAMES = {
    "BLANK_MAGIC_CODE",
    "MESSAGE_FLAG_POSITION",
    "MESSAGE_MAGIC_CODE",
    "MESSAGE_MAGIC_CODE_POSITION",
    "MESSAGE_MAGIC_CODE_V2",
    "MESSAGE_PHYSIC_OFFSET_POSITION",
    "MESSAGE_STORE_TIMESTAMP_POSITION",
    "QUEUE_OFFSET_POSITION",
    "SYSFLAG_POSITION",
}

CONSTANTS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "RequestCode": request_codes,
    "ResponseCode": lambda: response_codes(of_remoting=False),
    "RemotingSysResponseCode": lambda: response_codes(of_remoting=True),
    "LanguageCode": lambda: members(codes.LanguageCode),
    "SerializeType": lambda: members(codes.SerializeType),
    "MessageConst": lambda: public_constants(message_const, str),
    "MessageSysFlag": lambda: members(sys_flag.MessageSysFlag),
    "PullSysFlag": lambda: members(sys_flag.PullSysFlag),
    "PermName": permissions,
    "MessageDecoder": decoder_constants,
    "MixAll": lambda: names_of_mix_all() | {"MASTER_ID": MASTER_ID},
    "MQVersion": lambda: {
        "CURRENT_VERSION": codes.MQ_VERSION,
        "CURRENT_VERSION_NAME": codes.MQ_VERSION_NAME,
        "V4_9_4": codes.MQ_VERSION_V4_9_4,
    },
}


def constants(case: Case) -> Case:
    return {"constants": CONSTANTS[case["class"]]()}


def message_sys_flag(case: Case) -> Case:
    flag = case["flag"]
    return {
        "clearCompressed": sys_flag.clear_compressed_flag(flag),
        "compressionType": outcome(lambda: CompressionType.of_sys_flag(flag).name),
    }


def pull_sys_flag(case: Case) -> Case:
    flag = sys_flag.build_pull_sys_flag(
        commit_offset=case["commitOffset"],
        suspend=case["suspend"],
        subscription=case["subscription"],
        class_filter=case["classFilter"],
        lite_pull=case["litePull"],
    )
    return {"flag": flag, "clearCommit": sys_flag.clear_commit_offset_flag(flag)}


def namespaces(case: Case) -> Case:
    name, namespace = case["resource"], case["namespace"]
    return {
        "wrapNamespace": outcome(names.with_namespace, name, namespace),
        "withoutNamespace": outcome(names.without_namespace, name),
        "withoutThisNamespace": outcome(names.without_this_namespace, name, namespace),
        "getNamespaceFromResource": outcome(names.namespace_of, name),
    }


def group_topics(case: Case) -> Case:
    group = case["group"]
    return {
        "retryTopic": names.retry_topic(group),
        "dlqTopic": names.dlq_topic(group),
        "popRetryTopic": names.pop_retry_topic("T", group),
    }


def queue_order(case: Case) -> Case:
    queues = sorted(MessageQueue(*queue) for queue in case["in"])
    return {
        "sorted": show_queues(queues),
        "strings": [str(queue) for queue in queues],
    }


_PULL_INPUTS = ("commitOffset", "suspend", "subscription", "classFilter", "litePull")

SPECS: Mapping[str, tuple[Spec, ...]] = {
    "constants": (Spec(inputs=("class",), adapter=constants),),
    "sys_flag": (
        Spec(op="pull", inputs=_PULL_INPUTS, adapter=pull_sys_flag),
        Spec(inputs=("flag",), adapter=message_sys_flag),
    ),
    "names": (
        Spec(inputs=("namespace", "resource"), adapter=namespaces),
        Spec(inputs=("group",), adapter=group_topics),
    ),
    "queue_order": (Spec(inputs=("in",), adapter=queue_order),),
}
