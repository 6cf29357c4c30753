"""Public settings say what they are, and documenting them changes no default."""

import ast
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest

import rmqtools.config
from rmqtools.config import (
    ClientConfig,
    ConsumerConfig,
    ProducerConfig,
    PullConsumerConfig,
    PushConsumerConfig,
)
from rmqtools.model.group import ConsumeFromWhere, MessageModel

CONFIGS = (ClientConfig, ConsumerConfig, ProducerConfig, PullConsumerConfig, PushConsumerConfig)
MIB = 1024 * 1024


def docstrings_of_fields() -> dict[str, str | None]:
    """``Class.field`` -> the string that stands under it, over all modules of the package."""
    folder = Path(rmqtools.config.__file__).parent
    found: dict[str, str | None] = {}
    for path in sorted(folder.glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                found |= {f"{node.name}.{name}": text for name, text in fields_of(node)}
    return found


def fields_of(node: ast.ClassDef) -> list[tuple[str, str | None]]:
    return [
        (statement.target.id, text_of(under))
        for statement, under in zip(node.body, [*node.body[1:], None], strict=True)
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    ]


def text_of(statement: ast.stmt | None) -> str | None:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return str(statement.value.value)
    return None


def test_the_first_line_of_a_settings_docstring_is_a_sentence():
    first_lines = {name: (text or "").partition("\n")[0] for name, text in docstrings_of_fields().items()}

    assert {name: line for name, line in first_lines.items() if not line.endswith(".")} == {}


CLIENT: dict[str, Any] = {
    "client_ip": None,
    "instance_name": None,
    "namespace": None,
    "read_group": None,
    "broker_address_map": {},
    "connect_timeout": 3.0,
    "request_timeout": 3.0,
    "poll_name_server_interval": 30.0,
    "heartbeat_broker_interval": 30.0,
    "max_frame_bytes": 16 * MIB,
    "max_decompressed_bytes": 16 * MIB,
    "access_key": None,
    "secret_key": None,
    "security_token": None,
    "tls_enable": False,
    "tls_ca_file": None,
    "tls_cert_file": None,
    "tls_key_file": None,
    "tls_key_password": None,
    "tls_check_hostname": True,
}
CONSUMER = CLIENT | {
    "group": "",
    "message_model": MessageModel.CLUSTERING,
    "consume_from": ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
    "consume_timestamp_ms": None,
    "rebalance_interval": 20.0,
    "rebalance_min_interval": 1.0,
    "pin_poll_interval": 5.0,
    "persist_consumer_offset_interval": 5.0,
    "offset_store_path": None,
    "pull_batch_size": 32,
    "max_messages_per_second": None,
    "pull_threshold_for_queue": 1000,
    "pull_threshold_bytes_for_queue": 100 * MIB,
    "pull_timeout": 30.0,
    "long_poll_timeout": 15.0,
    "delay_after_error": 3.0,
}
DEFAULTS = {
    ClientConfig: CLIENT,
    ConsumerConfig: CONSUMER,
    PushConsumerConfig: CONSUMER
    | {
        "orderly": False,
        "consume_threads": 20,
        "consume_message_batch_max_size": 1,
        "consume_concurrently_max_span": 2000,
        "pull_threshold_for_topic": None,
        "pull_threshold_bytes_for_topic": None,
        "max_reconsume_times": -1,
        "consume_timeout": 900.0,
        "suspend_current_queue_time": 1.0,
        "close_timeout": 30.0,
        "client_rebalance": True,
        "pop_invisible_time": 60.0,
        "pop_batch_nums": 32,
        "pop_threshold_for_queue": 96,
        "enable_trace": False,
        "trace_topic": "RMQ_SYS_TRACE_TOPIC",
    },
    PullConsumerConfig: CONSUMER
    | {
        "pull_threshold_for_all": 10_000,
        "pull_threshold_bytes_for_all": 64 * MIB,
        "auto_commit": True,
        "auto_commit_interval": 5.0,
        "poll_batch_size": 10,
        "poll_timeout": 5.0,
    },
    ProducerConfig: CLIENT
    | {
        "group": "DEFAULT_PRODUCER",
        "send_timeout": 3.0,
        "retry_times_when_send_failed": 2,
        "retry_another_broker_when_not_store_ok": False,
        "send_latency_fault_enable": False,
        "start_detector_enable": False,
        "max_message_bytes": 4 * MIB,
        "compress_over_bytes": 4096,
        "compression": "zlib",
        "max_batch_bytes": 256 * 1024,
        "max_in_flight": 16,
        "linger": 0.0,
        "batch_bytes": 32 * 1024,
        "inner_batches": False,
        "enable_backpressure_for_async_mode": False,
        "back_pressure_for_async_send_num": 1024,
        "back_pressure_for_async_send_size": 100 * MIB,
        "back_pressure_waits": True,
        "enable_trace": False,
        "trace_topic": "RMQ_SYS_TRACE_TOPIC",
        "check_thread_pool_max_size": 1,
        "check_request_hold_max": 2000,
    },
}


@pytest.mark.parametrize("config", DEFAULTS, ids=lambda config: config.__name__)
def test_the_defaults_are_the_promised_ones(config):
    defaults = {
        field.name: field.default if field.default_factory is MISSING else field.default_factory()
        for field in fields(config)
        if field.name != "name_server"  # from the environment
    }

    changed = [
        name
        for name in {**defaults, **DEFAULTS[config]}
        if defaults.get(name, ...) != DEFAULTS[config].get(name, ...)
    ]
    assert not changed, (
        f"settings of {config.__name__} are new, gone or changed: correct DEFAULTS above: {changed}"
    )
