import pytest

from rmqtools.protocol.wire.command import RemotingCommand
from rmqtools.testing.fake.servers import MAX_BYTES, MAX_REQUESTS, RequestLog


@pytest.mark.process
def test_it_remembers_so_many_requests_and_no_more() -> None:
    log = RequestLog()
    for code in range(MAX_REQUESTS + 5):
        log.add("a", RemotingCommand(code))

    assert [one.code for one in log.find(None, None, None)] == list(range(5, MAX_REQUESTS + 5))


def test_it_remembers_so_many_bytes_and_the_newest_request_in_any_case() -> None:
    log = RequestLog()
    for code in range(3):
        log.add("a", RemotingCommand(code, body=bytes(MAX_BYTES // 2)))
    two = [one.code for one in log.find(None, None, None)]
    log.add("a", RemotingCommand(3, body=bytes(MAX_BYTES + 1)))

    assert two == [1, 2]
    assert [one.code for one in log.find(None, None, None)] == [3]
