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
def connected(serve: Callable[[socket.socket], object]) -> Iterator[Any]:
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


def answer_to(request: RemotingCommand, body: bytes) -> bytes:
    return response(0, request.opaque, body=body).encode(request.opaque)


def test_each_request_gets_its_answer():
    def serve(peer):
        for _ in range(3):
            request = next_request(peer)
            peer.sendall(answer_to(request, request.body * 2))
        until_closed(peer)

    with connected(serve) as connection:
        bodies = [connection.invoke(RemotingCommand(310, {}, b"%d" % number), 20).body for number in range(3)]

        assert bodies == [b"00", b"11", b"22"]
        assert not connection.is_spent
        assert connection.is_quiet()


def test_an_answer_may_come_in_pieces_and_behind_what_belongs_to_nobody():
    def serve(peer):
        request = next_request(peer)
        stranger = response(0, 5, body=b"other").encode(request.opaque ^ 1)
        asked = RemotingCommand(40, {}, b"").encode(request.opaque)
        for byte in stranger + asked + answer_to(request, b"mine"):
            peer.sendall(bytes([byte]))
        until_closed(peer)

    with connected(serve) as connection:
        assert connection.invoke(REQUEST, 20).body == b"mine"


@pytest.mark.process
def test_an_answer_may_come_later_than_one_call_of_the_socket_waits():
    def serve(peer):
        request = next_request(peer)
        threading.Event().wait(0.15)
        peer.sendall(answer_to(request, b"late"))
        until_closed(peer)

    with connected(serve) as connection:
        assert connection.invoke(REQUEST, 20).body == b"late"


@pytest.mark.parametrize("size", [3_700, 4_096, 100_000])
def test_an_answer_may_be_longer_than_what_one_call_of_the_socket_returns(size):
    def serve(peer):
        peer.sendall(answer_to(next_request(peer), b"x" * size))
        until_closed(peer)

    with connected(serve) as connection:
        assert connection.invoke(REQUEST, 20).body == b"x" * size


def test_an_interrupted_wait_runs_the_handler_and_goes_on_and_its_error_spends_the_connection():
    seen: list[Any] = []

    def serve(peer):
        request = next_request(peer)
        while not seen:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
            threading.Event().wait(0.01)
        peer.sendall(answer_to(request, b"after"))
        next_request(peer)
        while len(seen) < 2:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR2)
            threading.Event().wait(0.01)
        until_closed(peer)

    def interrupt(*_: object) -> None:
        seen.append("USR2")
        raise KeyboardInterrupt

    before = (
        signal.signal(signal.SIGUSR1, lambda *_: seen.append("USR1")),
        signal.signal(signal.SIGUSR2, interrupt),
    )
    try:
        with connected(serve) as connection:
            assert connection.invoke(REQUEST, 20).body == b"after"
            assert not connection.is_spent
            seen[1:] = []
            with pytest.raises(KeyboardInterrupt):
                connection.invoke(REQUEST, 20)
            assert connection.is_spent
    finally:
        signal.signal(signal.SIGUSR1, before[0])
        signal.signal(signal.SIGUSR2, before[1])


def test_a_large_request_is_written_while_the_peer_reads():
    def serve(peer):
        request = next_request(peer)
        peer.sendall(answer_to(request, b"%d" % len(request.body)))
        until_closed(peer)

    with connected(serve) as connection:
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
            connection.invoke(RemotingCommand(310, {}, b"x" * 64_000_000), 0.15)
        assert connection.is_spent
        over.set()


@pytest.mark.parametrize(
    ("written", "error", "text"),
    [
        (b"", ConnectionLostError, "lost: closed by the peer"),
        (b"\x00\x00\x00\x09", ConnectionLostError, "lost: closed by the peer"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", ProtocolError, "this port speaks HTTP"),
        (b"\x7f\xff\xff\xff\x00\x00\x00\x01", ProtocolError, "impossible frame"),
    ],
)
def test_a_peer_that_ends_or_talks_nonsense_leaves_a_spent_connection(written, error, text):
    def serve(peer):
        next_request(peer)
        peer.sendall(written)

    with connected(serve) as connection:
        with pytest.raises(error, match=f"127.0.0.1:10911.*{text}"):
            connection.invoke(REQUEST, 20)
        assert connection.is_spent


def test_nothing_is_sent_without_time_or_if_it_cannot_be_written_and_the_connection_stays():
    with connected(until_closed) as connection:
        with pytest.raises(RemotingConnectError, match="nothing was sent"):
            connection.invoke(REQUEST, 0.0)
        with pytest.raises(ProtocolError):
            connection.invoke(RemotingCommand(310, {"b": "\ud800"}, b""), 20)
        assert not connection.is_spent


@pytest.mark.parametrize("left_over", [b"\0\0\0", b"\0\0\0\x40\0\0\0\2", b"\0" * 8, b"\x7f" * 8, b"x"])
def test_bytes_of_another_frame_behind_the_answer_spend_the_connection(left_over):
    def serve(peer):
        peer.sendall(answer_to(next_request(peer), b"mine") + left_over)
        until_closed(peer)

    with connected(serve) as connection:
        assert connection.invoke(REQUEST, 20).body == b"mine"
        assert connection.is_spent


def test_a_whole_frame_behind_the_answer_is_ignored():
    def serve(peer):
        for _ in range(2):
            request = next_request(peer)
            peer.sendall(
                answer_to(request, b"mine") + answer_to(RemotingCommand(0, {}, b"", opaque=5), b"other")
            )
        until_closed(peer)

    with connected(serve) as connection:
        for _ in range(2):
            assert connection.invoke(REQUEST, 20).body == b"mine"
            assert not connection.is_spent


@pytest.mark.parametrize("timeout", [20, 0.05])
def test_nothing_is_sent_where_bytes_have_come_since_the_last_answer(timeout):
    received: list[Any] = []

    def serve(peer):
        peer.sendall(answer_to(next_request(peer), b"mine"))
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
    def serve(peer):
        first = next_request(peer)
        has_first.set()
        second = next_request(peer)
        peer.sendall(answer_to(second, b"second") + answer_to(first, b"first"))
        until_closed(peer)

    has_first = threading.Event()
    with connected(serve) as connection:
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


@pytest.mark.parametrize(("written", "error"), [(b"", ConnectionLostError), (b"\xff" * 8, ProtocolError)])
def test_a_started_request_whose_peer_ends_or_talks_nonsense(written, error):
    def serve(peer):
        next_request(peer)
        peer.sendall(written)

    with connected(serve) as connection:
        (number,) = connection.start(REQUEST)
        with pytest.raises(error, match="10911"):
            connection.finish(number, 5.0)
        assert connection.is_spent


def test_answers_that_nobody_waits_for_are_drained_and_the_connection_stays():
    def serve(peer):
        for body in (b"first", b"second"):
            peer.sendall(answer_to(next_request(peer), body))
        until_closed(peer)

    with connected(serve) as connection:
        connection.start(REQUEST)
        connection.drain(5.0)
        assert not connection.is_spent
        assert connection.invoke(REQUEST, 5.0).body == b"second"
