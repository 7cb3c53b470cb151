"""Servers end with their owner: in order, at exit, and when it is killed; several start and stop as one."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from headwater.local import MariaDBServer, PostgresServer, ServerKind, Service, Stack, StartError
from headwater.local.addresses import query_fault
from tests.kit.waiting import PATIENCE

pytestmark = pytest.mark.sample(2)

# Starts servers and never stops them: it is killed, or just ends.
OWNER = """
import json, sys
from headwater.local import KafkaServer, MariaDBServer, PostgresServer, ServerKind, Stack
kinds = {ServerKind.KAFKA: KafkaServer, ServerKind.MARIADB: MariaDBServer, ServerKind.POSTGRES: PostgresServer}
stack = Stack(map(ServerKind, sys.argv[1:]), lambda kind: kinds[kind]()).start()
servers = list(stack.services.values())
print(json.dumps({
    "servers": [one.pid for one in servers],
    "watchdogs": [one._process._watchdog.pid for one in servers],
    "directories": [str(one._place.path) for one in servers],
}), flush=True)
sys.stdin.readline()
"""


class Watched:
    """Processes that aren't our children, and how to wait for their end without looking at the clock."""

    def __init__(self, pids: list[int]) -> None:
        self._handles = [os.pidfd_open(pid) for pid in pids]

    def wait(self, seconds: float) -> None:
        for handle in self._handles:
            poll = select.poll()
            poll.register(handle, select.POLLIN)
            assert poll.poll(seconds * 1000), "a process outlived its owner"
            os.close(handle)


def nothing_is_left(kinds: list[str], end: Callable[[subprocess.Popen[str]], None], *, within: float) -> None:
    """Start an owner of these servers, end it, and see that its processes and directories go with it."""
    command = [sys.executable, "-c", OWNER, *kinds]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        reported = json.loads(owner.stdout.readline())
        watched = Watched(reported["servers"] + reported["watchdogs"])
        assert all(Path(place).is_dir() for place in reported["directories"])
        end(owner)
        owner.wait(PATIENCE)
        watched.wait(within)
    assert not [place for place in reported["directories"] if Path(place).exists()]


@pytest.mark.kafka
@pytest.mark.database
def test_nothing_is_left_when_the_owner_is_killed() -> None:
    nothing_is_left(["kafka", "mariadb", "postgres"], lambda owner: owner.kill(), within=PATIENCE)


@pytest.mark.database
def test_nothing_is_left_when_the_owner_ends_without_stopping() -> None:
    # At once: the owner itself stops them before it is gone, and leaves nothing to the watchdogs.
    nothing_is_left(["mariadb", "postgres"], lambda owner: owner.stdin.close() if owner.stdin else None, within=0)


@pytest.mark.database
def test_a_stack_tells_addresses_and_stops_all() -> None:
    made: list[Service] = []

    def make(kind: ServerKind) -> Service:
        made.append(PostgresServer() if kind is ServerKind.POSTGRES else MariaDBServer())
        return made[-1]

    with Stack([ServerKind.POSTGRES, ServerKind.MARIADB], make) as stack:
        reported = stack.environment
        assert set(reported) == {"HEADWATER_POSTGRES", "HEADWATER_MARIADB"}
        assert [query_fault(address) for address in reported.values()] == [None, None]
    assert [one.running for one in made] == [False, False]
    assert None not in [query_fault(address) for address in reported.values()]


@pytest.mark.database
def test_a_stack_of_which_one_fails_leaves_none() -> None:
    good, bad = PostgresServer(), MariaDBServer(settings={"no-such-setting": "1"})
    services: dict[ServerKind, Service] = {ServerKind.POSTGRES: good, ServerKind.MARIADB: bad}
    with pytest.raises(StartError, match="no-such-setting"):
        Stack(services, services.__getitem__).start()
    assert not good.running


@pytest.mark.database
def test_waiting_ends_when_told_or_when_a_server_dies() -> None:
    with PostgresServer() as server, Stack([ServerKind.POSTGRES], lambda _: server) as stack:
        reported = threading.Event()
        reported.set()
        stack.wait(reported)
        server.kill()
        with pytest.raises(StartError, match="postgres ended by itself"):
            stack.wait(threading.Event())


@pytest.mark.database
def test_servers_of_one_machine_share_no_temporary_tables() -> None:
    """One that starts clears its directory for them, so another that is being installed would lose its own."""
    with MariaDBServer() as one, MariaDBServer() as other:
        places = {_asked(server.address, "SELECT @@tmpdir") for server in (one, other)}
    assert len(places) == 2


def _asked(address: str, question: str) -> str:
    engine = create_engine(address)
    try:
        with engine.connect() as connection:
            return str(connection.execute(text(question)).scalar_one())
    finally:
        engine.dispose()
