"""The proxy does to a connection what its weather says: held to an echo server."""

from __future__ import annotations

import gc
import socket
import socketserver
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from tests.kit.faults.tcp_proxy import CLEAR, DEAF, HALF_OPEN, REFUSED, STALLED, Proxy, Weather
from tests.kit.waiting import PATIENCE, until

pytestmark = pytest.mark.slow

BRIEF = 0.2


class Echo(socketserver.BaseRequestHandler):
    heard: bytes = b""

    def handle(self) -> None:
        try:
            while data := self.request.recv(65536):
                type(self).heard += data
                self.request.sendall(data)
        except ConnectionError:
            return


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as server, Proxy() as proxy:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        Echo.heard = b""
        proxy.target = ("127.0.0.1", server.server_address[1])
        try:
            yield proxy
        finally:
            proxy.cut()
            server.shutdown()
            thread.join()


def client(proxy: Proxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=PATIENCE)


def echoed(connection: socket.socket, data: bytes) -> bytes:
    connection.sendall(data)
    return connection.recv(65536)


def assert_silent(connection: socket.socket) -> None:
    connection.settimeout(BRIEF)
    with pytest.raises(TimeoutError):
        connection.recv(1)
    connection.settimeout(PATIENCE)


def test_in_clear_weather_everything_passes(proxy: Proxy) -> None:
    with client(proxy) as one, client(proxy) as other:
        assert (echoed(one, b"a"), echoed(other, b"b")) == (b"a", b"b")
        assert proxy.connections == 2


def test_what_is_cut_is_reset_and_the_next_connection_works(proxy: Proxy) -> None:
    with client(proxy) as one:
        echoed(one, b"a")
        proxy.cut()
        with pytest.raises(ConnectionResetError):
            one.recv(1)
    with client(proxy) as again:
        assert echoed(again, b"b") == b"b"


def test_who_is_refused_comes_back_to_the_same_port(proxy: Proxy) -> None:
    with client(proxy) as before:
        echoed(before, b"a")
        with proxy.weather(REFUSED):
            with pytest.raises(ConnectionRefusedError):
                client(proxy)
            assert echoed(before, b"b") == b"b"
        with client(proxy) as after:
            assert echoed(after, b"c") == b"c"


def test_what_stalls_is_taken_and_goes_on_when_it_clears_up(proxy: Proxy) -> None:
    with client(proxy) as before:
        echoed(before, b"a")
        with proxy.weather(STALLED), client(proxy) as new:
            before.sendall(b"b")
            new.sendall(b"c")
            assert_silent(before)
            assert_silent(new)
            assert Echo.heard == b"a"
            proxy.turn(CLEAR)
            assert (before.recv(1), new.recv(1)) == (b"b", b"c")


def test_a_half_open_connection_stays_so(proxy: Proxy) -> None:
    with client(proxy) as before:
        echoed(before, b"a")
        with proxy.weather(HALF_OPEN):
            before.sendall(b"b")
            assert_silent(before)
        before.sendall(b"c")
        assert_silent(before)
        assert Echo.heard == b"a"
        with client(proxy) as after:
            assert echoed(after, b"d") == b"d"


def test_where_answers_are_lost_requests_arrive(proxy: Proxy) -> None:
    with client(proxy) as before:
        echoed(before, b"a")
        with proxy.weather(DEAF):
            before.sendall(b"b")
            until(lambda: Echo.heard == b"ab", "the request")
            assert_silent(before)


@pytest.mark.slow
def test_slow_ones_take_their_time(proxy: Proxy) -> None:
    with client(proxy) as one:
        echoed(one, b"a")
        for weather in (Weather(delay=BRIEF), Weather(rate=5 / BRIEF)):
            began = time.monotonic()
            with proxy.weather(weather):
                assert echoed(one, b"bcdef") == b"bcdef"
            assert time.monotonic() - began >= 2 * BRIEF


def test_a_server_that_is_not_there_is_a_reset(proxy: Proxy) -> None:
    proxy.target = ("127.0.0.1", 1)
    with pytest.raises(ConnectionResetError), client(proxy) as one:  # which may come while it connects
        one.recv(1)


def test_an_end_is_passed_on(proxy: Proxy) -> None:
    with client(proxy) as one:
        echoed(one, b"a")
        one.shutdown(socket.SHUT_WR)
        assert one.recv(1) == b"", "the server has ended too, and nothing was reset"


def test_a_proxy_that_ends_while_clients_come_closes_them_all(proxy: Proxy) -> None:
    """Finds a connection whose end is forgotten: its socket's warning would turn some later test red."""
    for _ in range(100):
        with ThreadPoolExecutor(4) as clients, Proxy() as ending:
            ending.target = proxy.target
            places = [clients.submit(socket.create_connection, ("127.0.0.1", ending.port)) for _ in range(8)]
            places[0].result().close()
        for place in places:
            with suppress(OSError):
                place.result().close()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        gc.collect()
    assert [str(each.message) for each in warned] == []
