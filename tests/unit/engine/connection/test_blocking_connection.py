"""A blocking connection: answers in pieces, answers of others, silence, ends."""

import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.engine.connection import blocking_connection
from rmqtools.engine.connection.blocking_connection import BlockingConnection, UnexpectedBytesError
from rmqtools.errors import ConnectionLostError, ProtocolError, RemotingConnectError, RemotingTimeoutError
from rmqtools.protocol.wire.command import RemotingCommand, decode_command, response
from rmqtools.protocol.wire.framing import FrameDecoder
from tests.support.fake import Fake

REQUEST = RemotingCommand(310, {"b": "T"}, b"body")

Serve = Callable[[socket.socket], object]

ASKED = pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda connection: connection.invoke(REQUEST, 20), id="invoked"),
        pytest.param(lambda connection: connection.finish(*connection.start(REQUEST), 20), id="started"),
    ],
)


@pytest.fixture(autouse=True, params=["twins", "python"])
def twins(request, monkeypatch):
    """Every test with the compiled functions and without them."""
    if request.param == "python":
        monkeypatch.setattr(blocking_connection, "twins", None)


class Beside(Fake):
    """What is used of the loop's connection."""

    addr = "127.0.0.1:10911"
    bytes_received = 0

    def __init__(self) -> None:
        self.silences: list[tuple[int, float]] = []

    def note_silence(self, bytes_received_before: int, waited: float) -> bool:
        self.silences.append((bytes_received_before, waited))
        return True


@contextmanager
def connected(serve: Serve) -> Iterator[Any]:
    """A connection to a thread that runs ``serve(socket)``, and closes the socket then."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ours = socket.create_connection(listening.getsockname())
        theirs, _ = listening.accept()

    def run() -> None:
        with theirs:
            serve(theirs)

    thread = threading.Thread(target=run)
    thread.start()
    connection = BlockingConnection(ours, Beside(), max_frame_bytes=2**20, clock=SYSTEM_CLOCK)
    try:
        yield connection
    finally:
        connection.close()
        thread.join()


def next_request(peer: socket.socket) -> RemotingCommand:
    decoder = FrameDecoder()
    while True:
        for frame in decoder.feed(peer.recv(65536)):
            return decode_command(frame)


def until_closed(peer: socket.socket) -> None:
    while peer.recv(65536):
        pass


def answering(*answers: Callable[[RemotingCommand], bytes], pieces_of: int = 2**30) -> Serve:
    """A peer that writes ``answer(request)`` to one request after the other, then waits for the end."""

    def serve(peer: socket.socket) -> None:
        for answer in answers:
            data = answer(next_request(peer))
            for start in range(0, len(data), pieces_of):
                peer.sendall(data[start : start + pieces_of])
        until_closed(peer)

    return serve


def ending_with(data: bytes) -> Serve:
    """A peer that writes these bytes after the first request, and closes the connection."""

    def serve(peer: socket.socket) -> None:
        next_request(peer)
        peer.sendall(data)

    return serve


def answer_to(request: RemotingCommand, body: bytes) -> bytes:
    return response(0, request.opaque, body=body).encode(request.opaque)


def mine(request: RemotingCommand) -> bytes:
    return answer_to(request, b"mine")


def test_each_request_gets_its_answer():
    with connected(answering(*[lambda request: answer_to(request, request.body * 2)] * 3)) as connection:
        bodies = [connection.invoke(RemotingCommand(310, {}, b"%d" % number), 20).body for number in range(3)]

        assert bodies == [b"00", b"11", b"22"]
        assert not connection.is_spent
        assert connection.is_quiet()


def test_an_answer_may_come_in_pieces_and_behind_what_belongs_to_nobody():
    def behind_others(request):
        stranger = response(0, 5, body=b"other").encode(request.opaque ^ 1)
        asked = RemotingCommand(40, {}, b"").encode(request.opaque)
        return stranger + asked + mine(request)

    with connected(answering(behind_others, pieces_of=1)) as connection:
        assert connection.invoke(REQUEST, 20).body == b"mine"


@pytest.mark.process
def test_an_answer_may_come_later_than_one_call_of_the_socket_waits():
    def late(request):
        threading.Event().wait(0.15)
        return mine(request)

    with connected(answering(late)) as connection:
        assert connection.invoke(REQUEST, 20).body == b"mine"


@pytest.mark.parametrize("size", [3_700, 4_096, 100_000])
def test_an_answer_may_be_longer_than_what_one_call_of_the_socket_returns(size):
    with connected(answering(lambda request: answer_to(request, b"x" * size))) as connection:
        assert connection.invoke(REQUEST, 20).body == b"x" * size


def test_an_interrupted_wait_runs_the_handler_and_goes_on_and_its_error_spends_the_connection():
    seen: list[Any] = []

    def interrupting(number: signal.Signals, count: int):
        def answer(request):
            while len(seen) < count:
                signal.pthread_kill(threading.main_thread().ident or 0, number)
                threading.Event().wait(0.01)
            return mine(request) if number == signal.SIGUSR1 else b""

        return answer

    def interrupt(*_: object) -> None:
        seen.append("USR2")
        raise KeyboardInterrupt

    before = (
        signal.signal(signal.SIGUSR1, lambda *_: seen.append("USR1")),
        signal.signal(signal.SIGUSR2, interrupt),
    )
    serve = answering(interrupting(signal.SIGUSR1, 1), interrupting(signal.SIGUSR2, 2))
    try:
        with connected(serve) as connection:
            assert connection.invoke(REQUEST, 20).body == b"mine"
            assert not connection.is_spent
            seen[1:] = []
            with pytest.raises(KeyboardInterrupt):
                connection.invoke(REQUEST, 20)
            assert connection.is_spent
    finally:
        signal.signal(signal.SIGUSR1, before[0])
        signal.signal(signal.SIGUSR2, before[1])


def test_a_large_request_is_written_while_the_peer_reads():
    with connected(answering(lambda request: answer_to(request, b"%d" % len(request.body)))) as connection:
        assert connection.invoke(RemotingCommand(310, {}, b"x" * 8_000_000), 20).body == b"8000000"


@pytest.mark.process
def test_silence_is_a_timeout_of_a_spent_connection_and_is_told_to_the_loops():
    with connected(until_closed) as connection:
        with pytest.raises(
            RemotingTimeoutError, match=r"did not answer SEND_MESSAGE_V2 \(310\) within 0\.150 s"
        ):
            connection.invoke(REQUEST, 0.15)

        assert connection.is_spent
        assert connection.beside.silences == [(0, 0.15)]


@pytest.mark.process
def test_a_peer_that_takes_no_bytes_is_a_timeout():
    over = threading.Event()

    with connected(lambda peer: over.wait(20)) as connection:
        with pytest.raises(RemotingTimeoutError):
            connection.invoke(RemotingCommand(310, {}, b"x" * 16_000_000), 0.15)
        assert connection.is_spent
        over.set()


@ASKED
@pytest.mark.parametrize(
    ("written", "error", "text"),
    [
        (b"", ConnectionLostError, "lost: closed by the peer"),
        (b"\x00\x00\x00\x09", ConnectionLostError, "lost: closed by the peer"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", ProtocolError, "this port speaks HTTP"),
        (b"\x7f\xff\xff\xff\x00\x00\x00\x01", ProtocolError, "impossible frame"),
    ],
)
def test_a_peer_that_ends_or_talks_nonsense_leaves_a_spent_connection(ask, written, error, text):
    with connected(ending_with(written)) as connection:
        with pytest.raises(error, match=f"127.0.0.1:10911.*{text}"):
            ask(connection)
        assert connection.is_spent


def test_nothing_is_sent_without_time_or_if_it_cannot_be_written_and_the_connection_stays():
    with connected(until_closed) as connection:
        with pytest.raises(RemotingConnectError, match="nothing was sent"):
            connection.invoke(REQUEST, 0.0)
        with pytest.raises(ProtocolError):
            connection.invoke(RemotingCommand(310, {"b": "\ud800"}, b""), 20)
        assert not connection.is_spent


@ASKED
@pytest.mark.parametrize("left_over", [b"\0\0\0", b"\0\0\0\x40\0\0\0\2", b"\0" * 8, b"\x7f" * 8, b"x"])
def test_bytes_of_another_frame_behind_the_answer_spend_the_connection(left_over, ask):
    with connected(answering(lambda request: mine(request) + left_over)) as connection:
        assert ask(connection).body == b"mine"
        assert connection.is_spent


def test_a_whole_frame_behind_the_answer_is_ignored():
    other = answer_to(RemotingCommand(0, {}, b"", opaque=5), b"other")

    with connected(answering(*[lambda request: mine(request) + other] * 2)) as connection:
        for _ in range(2):
            assert connection.invoke(REQUEST, 20).body == b"mine"
            assert not connection.is_spent


@pytest.mark.parametrize("timeout", [20, 0.05])
def test_nothing_is_sent_where_bytes_have_come_since_the_last_answer(timeout):
    received: list[Any] = []

    def serve(peer):
        peer.sendall(mine(next_request(peer)))
        late.wait(20)
        peer.sendall(b"\0\0\0")
        with contextlib.suppress(ConnectionResetError):  # ours is closed with bytes that it has not read
            received.append(peer.recv(65536))

    late = threading.Event()
    with connected(serve) as connection:
        connection.invoke(REQUEST, 20)
        late.set()
        while connection.is_quiet():
            pass
        with pytest.raises(UnexpectedBytesError):
            connection.invoke(REQUEST, timeout)
        assert connection.is_spent
    assert received in ([b""], [])


def test_another_thread_can_end_a_wait():
    def serve(peer):
        next_request(peer)
        connection.shut()
        until_closed(peer)

    with connected(serve) as connection, pytest.raises(ConnectionLostError):
        connection.invoke(REQUEST, 20)


def test_started_requests_get_their_answers_in_any_order_and_spend_the_connection_until_then():
    requests: list[RemotingCommand] = []
    has_first = threading.Event()

    def hold(request):
        requests.append(request)
        has_first.set()
        return b""

    def both(request):
        return answer_to(request, b"second") + answer_to(requests[0], b"first")

    with connected(answering(hold, both)) as connection:
        numbers = connection.start(REQUEST)
        assert has_first.wait(5.0)
        numbers += connection.start(REQUEST)
        assert connection.is_spent
        assert connection.finish(numbers[0], 5.0).body == b"first"
        assert connection.is_spent
        assert connection.finish(numbers[1], 5.0).body == b"second"
        assert not connection.is_spent


def test_a_started_request_without_answer_is_a_timeout_and_leaves_the_connection_spent():
    with connected(until_closed) as connection:
        (number,) = connection.start(REQUEST)
        with pytest.raises(RemotingTimeoutError, match=r"10911 did not answer within 0\.150 s"):
            connection.finish(number, 0.15)
        assert connection.is_spent
