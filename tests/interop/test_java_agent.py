"""One trace through Java and Python: OpenTelemetry's agent beside the official client, and our telemetry."""

import re
from pathlib import Path

import pytest

from rmqtools import Message, Producer, ProducerConfig
from rmqtools.cluster.jars import ensure_jars
from rmqtools.cluster.lock import LockedJar
from tests.support.cluster_scene import wait_until
from tests.support.java_consumer import JavaConsumer
from tests.support.java_peer import JavaPeer, PeerMessage
from tests.support.listening import Heard, listening, new_group
from tests.unit.otel.conftest import recorded  # noqa: F401 - a fixture

pytestmark = [pytest.mark.broker, pytest.mark.slow]

AGENT = LockedJar(
    "io.opentelemetry.javaagent",
    "opentelemetry-javaagent",
    None,
    "2.10.0",
    "d05f6e36fac8db629263a6aaec2841cc934d064d7b19bfe38425b604b8b54926",
)
_SPAN = re.compile(r"'(?P<name>[^']*)' : (?P<trace>[0-9a-f]{32}) (?P<span>[0-9a-f]{16}) (?P<kind>\w+)")


@pytest.fixture
def spans_file(tmp_path: Path) -> Path:
    return tmp_path / "spans.log"


@pytest.fixture
def java_with_agent(spans_file: Path) -> JavaPeer:
    """The Java programs with the agent, which writes its spans to the file."""
    (agent,) = ensure_jars([AGENT])
    own = "io.opentelemetry.javaagent.slf4j.simpleLogger"
    options = {
        "otel.traces.exporter": "console",
        "otel.metrics.exporter": "none",
        "otel.logs.exporter": "none",
        "otel.javaagent.logging": "simple",
        f"{own}.logFile": str(spans_file),
        "otel.instrumentation.messaging.experimental.receive-telemetry.enabled": "false",
    }
    return JavaPeer.compiled(
        jvm_options=(f"-javaagent:{agent}", *(f"-D{name}={value}" for name, value in options.items()))
    )


def java_spans(file: Path) -> list[re.Match[str]]:
    return list(_SPAN.finditer(file.read_text())) if file.exists() else []


def test_what_java_sends_is_processed_by_us_in_its_trace(
    recorded,  # noqa: F811
    java_with_agent,
    spans_file,
    local_cluster,
    topic,
):
    java_with_agent.fill(local_cluster.name_server, [PeerMessage(topic=topic, body=b"from Java")])
    (sent,) = [span for span in java_spans(spans_file) if span["kind"] == "PRODUCER"]
    with listening(local_cluster.name_server, topic, Heard()):
        wait_until(lambda: recorded.spans(f"process {topic}"))

    (processed,) = recorded.spans(f"process {topic}")
    assert f"{processed.parent.trace_id:032x}" == sent["trace"]
    assert f"{processed.parent.span_id:016x}" == sent["span"]


def test_what_we_send_is_processed_by_java_in_our_trace(
    recorded,  # noqa: F811
    java_with_agent,
    spans_file,
    local_cluster,
    topic,
):
    with Producer(ProducerConfig(name_server=local_cluster.name_server)) as producer:
        producer.send(Message(topic, b"from Python"))
    with JavaConsumer(java_with_agent, local_cluster.name_server, new_group(), topic, "--print") as member:
        member.await_messages(1)
        wait_until(lambda: [span for span in java_spans(spans_file) if span["kind"] == "CONSUMER"])

    (sent,) = recorded.spans(f"send {topic}")
    (processed,) = [span for span in java_spans(spans_file) if span["kind"] == "CONSUMER"]
    assert processed["trace"] == f"{sent.context.trace_id:032x}"
