"""A TCP proxy on loopback that makes a network's weather between a client and a server, on a thread of its own.

    with Proxy() as proxy:
        proxy.target = ("127.0.0.1", port)
        with proxy.weather(STALLED):
            …

A connection of which something was swallowed, or that was stalled, knows nothing of better weather to come: what is
swallowed stays so, and its client has to notice by itself that nobody answers.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Coroutine, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, TypeVar

from typing_extensions import Self

T = TypeVar("T")
_CHUNK = 64 * 1024
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER of 0 s: closing sends a reset


@dataclass(frozen=True, kw_only=True)
class Weather:
    """What happens to bytes on their way."""

    refuses: bool = False
    """New connections are refused; those that are there live on."""
    stalls: bool = False
    """New connections are taken and nothing more; on those that are there nothing moves, until it clears up."""
    loses_requests: bool = False
    """What clients send is taken, and never gets anywhere: half-open, the server's host is gone."""
    loses_answers: bool = False
    """What clients send arrives, and what is answered doesn't."""
    delay: float = 0.0
    """Seconds that each piece takes, one after another."""
    rate: float = 0.0
    """Bytes per second on each connection and way; 0 is no limit."""


CLEAR: Final = Weather()
REFUSED: Final = Weather(refuses=True)
STALLED: Final = Weather(stalls=True)
HALF_OPEN: Final = Weather(loses_requests=True, loses_answers=True)
DEAF: Final = Weather(loses_answers=True)


class Proxy:
    """Listens on a port of its own, which stays its own; `target` is where it leads, and can be changed."""

    def __init__(self) -> None:
        self.target: tuple[str, int] | None = None
        self._place = _bound(0)  # never listens: it keeps the port while the one that listens is closed
        self._weather = CLEAR
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._links: set[_Link] = set()
        self._listening: socket.socket | None = None
        self._changed: asyncio.Event | None = None

    @property
    def port(self) -> int:
        port: int = self._place.getsockname()[1]
        return port

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def connections(self) -> int:
        """How many are open now."""
        return len(self._links)

    def cut(self) -> None:
        """Reset whatever is open, on both sides. New connections are none of its business."""
        self._call(self._cut())

    def turn(self, weather: Weather) -> None:
        """It is so from now on: for what is open, and for what will be."""
        self._call(self._turn(weather))

    @contextmanager
    def weather(self, weather: Weather) -> Generator[None]:
        """It is so within the block, and clear after it."""
        self.turn(weather)
        try:
            yield
        finally:
            self.turn(CLEAR)

    def __enter__(self) -> Self:
        self._thread.start()
        self._call(self._turn(CLEAR))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._place.close()

    def _call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)

    async def _turn(self, weather: Weather) -> None:
        self._weather = weather
        if self._changed is not None:
            self._changed.set()
        self._changed = asyncio.Event()
        if weather.refuses:
            self._stop_listening()
        elif self._listening is None:
            self._listening = _bound(self.port)
            self._listening.setblocking(False)
            self._listening.listen(128)
            self._loop.add_reader(self._listening, self._take, self._listening)

    def _stop_listening(self) -> None:
        """Close what listens. What is open lives on."""
        if self._listening is not None:
            self._loop.remove_reader(self._listening)
            self._listening.close()
            self._listening = None

    async def _cut(self) -> None:
        tasks = [link.task for link in self._links]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # what was reset is closed in the loop's next round

    async def _end(self) -> None:
        self._stop_listening()
        await self._cut()

    def _take(self, listening: socket.socket) -> None:
        """Accept by hand: asyncio's own server forgets a connection that it was taking up when it was closed."""
        with suppress(BlockingIOError, ConnectionError):  # whoever knocked has gone
            link = _Link(listening.accept()[0])
            self._links.add(link)
            link.task = self._loop.create_task(self._carry(link))
            link.task.add_done_callback(lambda _: self._drop(link))

    def _drop(self, link: _Link) -> None:
        link.reset()
        self._links.discard(link)

    async def _carry(self, link: _Link) -> None:
        try:
            reader, writer = await asyncio.open_connection(sock=link.client)
            link.writers.append(writer)
            await self._clear_up()
            if self.target is None:
                return
            behind_reader, behind_writer = await asyncio.open_connection(*self.target)
            link.writers.append(behind_writer)
            await asyncio.gather(
                self._pump(link, reader, behind_writer, is_request=True),
                self._pump(link, behind_reader, writer, is_request=False),
            )
        except (OSError, asyncio.CancelledError):
            pass  # either side has gone, or the server isn't there, or the test is over: the others see the reset

    async def _pump(
        self, link: _Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_request: bool
    ) -> None:
        while data := await reader.read(_CHUNK):
            await self._clear_up()
            weather = self._weather
            link.loses[is_request] |= weather.loses_requests if is_request else weather.loses_answers
            if link.loses[is_request]:
                continue
            pause = weather.delay + (len(data) / weather.rate if weather.rate else 0.0)
            if pause:
                await asyncio.sleep(pause)
            writer.write(data)
            await writer.drain()
        if not any(link.loses.values()):  # a host that is gone closes nothing
            writer.close()

    async def _clear_up(self) -> None:
        while self._weather.stalls:
            assert self._changed is not None
            await self._changed.wait()


class _Link:
    """One client's connection, and the one that was made for it."""

    task: asyncio.Task[None]

    def __init__(self, client: socket.socket) -> None:
        client.setblocking(False)
        self.client = client
        self.writers: list[asyncio.StreamWriter] = []
        self.loses = {True: False, False: False}
        """Requests, and answers: whatever comes after the first that was lost is lost too."""

    def reset(self) -> None:
        for writer in self.writers:
            ours = writer.get_extra_info("socket")
            with suppress(OSError):
                ours.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            writer.transport.abort()
        if not self.writers:
            self.client.close()


def _bound(port: int) -> socket.socket:
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    bound.bind(("127.0.0.1", port))
    return bound
