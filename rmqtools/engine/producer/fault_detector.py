"""Probes brokers that failed, so that they are used again as soon as they answer.

Source of the rule: LatencyFaultToleranceImpl.detectByOneRound, startDetector (Java client).
"""

from rmqtools.engine.connection.client import ClientCore
from rmqtools.errors import RocketMQError
from rmqtools.model.codes import RequestCode
from rmqtools.policy.broker_address import find_in_publish
from rmqtools.policy.fault import DETECT_TIMEOUT, LatencyFaultTolerance
from rmqtools.protocol.wire.command import RemotingCommand

ROUND_INTERVAL = 3.0  # seconds; upstream startDetector


async def detect_once(client: ClientCore, tolerance: LatencyFaultTolerance) -> None:
    """Probe every broker that is due."""
    for name in tolerance.due_for_detection(round(client.clock.monotonic() * 1000)):
        addr = find_in_publish(client.routes.tables.broker_addrs, name)
        tolerance.detected(name, None if addr is None else await _answers(client, addr))


async def _answers(client: ClientCore, addr: str) -> bool:
    try:
        command = RemotingCommand(RequestCode.GET_BROKER_RUNTIME_INFO)
        await client.remoting.invoke_ok(addr, command, timeout=DETECT_TIMEOUT)
    except RocketMQError:
        return False
    return True
