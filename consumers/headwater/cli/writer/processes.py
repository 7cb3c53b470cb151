"""`headwater writer run --processes N`: as many writers of one group, because one interpreter keeps one core busy.

They share the partitions as writers on several machines would, and know nothing of each other. A signal goes to all of
them; where one fails, the others are asked to end too, and so are all where the one that began them is gone.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from headwater.cli.store import options_of
from headwater.cli.writer.pipelines import JDBC
from headwater.errors import ConfigurationError

_LOG: Final = logging.getLogger(__name__)
_LAST_PORT: Final = (1 << 16) - 1
_BY_SIGNAL: Final = 128


def together(arguments: Sequence[str], given: Any) -> tuple[int, dict[str, int]]:
    """Return, when all have ended, the status of the first that failed and what they wrote together."""
    _refuse(given)
    ends = asyncio.run(_run(list(_commands(arguments, given))))
    figures = Counter[str]()
    for _, answer in ends:
        figures.update(json.loads(answer)["written"] if answer else {})
    return next((status for status, _ in ends if status), 0), dict(figures)


def _refuse(given: Any) -> None:
    """Raise what only one process at a time can do."""
    if not given.bus.startswith("kafka:"):
        raise ConfigurationError("one process reads a local log: leave --processes at 1")
    urls = [given.store, *dict(given.catalog_store).values()] if given.lineage_meta == JDBC else []
    if any(options_of(given, url).target.kind.scheme == "sqlite" for url in urls):
        raise ConfigurationError("SQLite lets one process write at a time: leave --processes at 1")
    if given.health is not None and given.health[1] + given.processes - 1 > _LAST_PORT:
        raise ConfigurationError("each process has a port of its own for --health, from this one on: name a lower one")


def _commands(arguments: Sequence[str], given: Any) -> Iterator[list[str]]:
    for number in range(given.processes):
        own = ["--processes", "1"]
        if given.health is not None:
            host, port = given.health
            own += ["--health", f"{host}:{port + number}"]
        if number:  # once is enough
            own.append("--no-maintenance")
        yield [sys.executable, "-m", __name__, *arguments, *own, "--output", "json"]


async def _run(commands: Sequence[Sequence[str]]) -> list[tuple[int, bytes]]:
    """Run them in sessions of their own: a Ctrl-C reaches them once, from here."""
    children: list[asyncio.subprocess.Process] = []

    def stop() -> None:
        for child in children:
            if child.returncode is None:
                child.send_signal(signal.SIGTERM)

    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stop)
    pipe = asyncio.subprocess.PIPE
    try:
        for command in commands:
            child = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, start_new_session=True)
            children.append(child)
    except BaseException:
        stop()
        raise

    async def ended(child: asyncio.subprocess.Process) -> tuple[int, bytes]:
        answer = await child.stdout.read() if child.stdout else b""
        status = await child.wait()
        if status:
            _LOG.error("the writer in process %d ended with status %d: the others end too", child.pid, status)
            stop()
        return _BY_SIGNAL - status if status < 0 else status, answer

    return list(await asyncio.gather(*map(ended, children)))


def _one(arguments: Sequence[str]) -> int:
    """Run one of them: its standard input ends with the process that began it."""
    from headwater.cli.app import main  # noqa: PLC0415

    threading.Thread(target=_end_with, args=(sys.stdin.fileno(),), daemon=True).start()
    return main(["writer", "run", *arguments])


def _end_with(descriptor: int) -> None:
    while os.read(descriptor, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(_one(sys.argv[1:]))
