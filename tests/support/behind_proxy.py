"""A fake cluster that answers as a proxy does, or as brokers of another version do."""

from dataclasses import replace

from rmqtools.model.codes import RequestCode
from rmqtools.policy.endpoint.versions import parse_version
from rmqtools.protocol.wire.command import RemotingCommand, response
from rmqtools.testing import FakeCluster
from rmqtools.testing.fake.faults import Fault

PROXY_FIELDS = {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
_ROUTE = (
    b'{"brokerDatas":[{"brokerAddrs":{"0":"%s"},"brokerName":"broker-a","cluster":"DefaultCluster"}],'
    b'"queueDatas":[{"brokerName":"broker-a","perm":6,"readQueueNums":4,"writeQueueNums":4,"topicSysFlag":0}]}'
)


def show_as_proxy(cluster: FakeCluster) -> None:
    """Let answers about routes carry a proxy's fields; the brokers themselves serve everything."""
    body = _ROUTE.replace(b"%s", cluster.addr().encode())
    answer = response(0, 0, ext_fields=PROXY_FIELDS, body=body)
    cluster.fault(code=RequestCode.GET_ROUTEINFO_BY_TOPIC, times=None, answer=answer)


def show_version(cluster: FakeCluster, version: str, *, times: int | None = None) -> Fault:
    """Let a broker answer the questions after its version with this one."""
    number = parse_version(version)

    def answer(request: RemotingCommand) -> RemotingCommand:
        return replace(response(0, 0, ext_fields={"offset": "0"}), version=number)

    for code in (RequestCode.GET_MIN_OFFSET, RequestCode.GET_BROKER_RUNTIME_INFO):
        fault = cluster.fault(code=code, broker="broker-a", times=times, answer=answer)
    return fault
