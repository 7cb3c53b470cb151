"""`headwater dev up`: broker, database and writer, in the foreground or left running; or real servers alone."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from threading import Event
from typing import Final

from headwater.cli.commands import command
from headwater.cli.dev.home import DevState, Home, Phase, add_home
from headwater.cli.dev.status import DATABASES, as_file, instruct, spark_conf
from headwater.cli.dev.supervisor import Supervisor
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, one_of
from headwater.cli.output import CommandOutput
from headwater.errors import ConfigurationError
from headwater.local import ServerKind, Stack, StartError, prefetch
from headwater.local.process import tail

_POLL_SECONDS: Final = 0.1
_PATIENCE: Final = 300.0
_LEFT_SECONDS: Final = 20.0


_SERVERS: Final = tuple(kind.value for kind in ServerKind)


def _flags(parser: Flags) -> None:
    parser.word("servers", one_of(_SERVERS, "server"), f"only these servers: {', '.join(_SERVERS)}", "SERVER", "*")
    parser.switch("detach", "leave them running until `headwater dev down`", short="d")
    parser.flag("database", one_of(DATABASES, "database"), None, "postgres, unless the directory has another", "NAME")
    parser.flag("topic", str, "headwater.events", "the topic of events", "NAME")


@command(
    """Start Kafka, a database and the writer between them on this machine, without Docker and without root.

It prints how to configure Spark and how to ask the store. They run until Ctrl-C, or with --detach until
`headwater dev down`; what they have is kept in a directory and is there again next time.

With names of servers: those alone, with empty disks of their own, until Ctrl-C.""",
    "headwater dev up",
    "headwater dev up --detach --database mariadb",
    "headwater dev up kafka postgres",
    flags=[add_home, _flags],
)
def up(given: Namespace, output: CommandOutput) -> int:
    if given.servers:
        return _servers([ServerKind(name) for name in dict.fromkeys(given.servers)], output)
    home = Home.of(given.home).create()
    database = _database(home, given.database)
    if given.detach:
        return _start_detached(home, database, given.topic, output)
    with home.hold_lock() as is_ours:
        if is_ours:
            return _in_foreground(home, database, given.topic, output)
    return _already_running(home, output)


def _servers(kinds: Sequence[ServerKind], output: CommandOutput) -> int:
    with until_stopped():
        _say(output, f"starting {', '.join(kind.value for kind in kinds)} …")
        with Stack(kinds) as stack:
            output.record("variables", stack.environment, "What another terminal sets to use them")
            output.finish()
            _say(output, "Ctrl-C stops them, and nothing of them is left.")
            stack.wait(Event())
    return Exit.DONE


def _database(home: Home, wanted: str | None) -> ServerKind:
    """Return the database; the one that a home has its store in stays."""
    state = home.state()
    there = next((name for name in DATABASES if state and name in state.parts), None)
    if wanted and there and wanted != there:
        raise ConfigurationError(f"the store of {home.path} is in {there}: take another --home for one in {wanted}")
    return ServerKind(wanted or there or ServerKind.POSTGRES.value)


def _in_foreground(home: Home, database: ServerKind, topic: str, output: CommandOutput) -> int:
    """The lock is ours."""
    with until_stopped():
        _end_orphans(home, output)
        _say(output, f"starting kafka, {database.value} and the writer in {home.path} …")
        supervisor = Supervisor(home, database, topic, lambda text: _say(output, text))
        supervisor.start(lambda broker: _prepare_home(home, broker, topic))
        try:
            instruct(output, home, supervisor.state)
            output.finish()
            _say(output, "\nCtrl-C stops them; what they have is there again next time.")
            supervisor.watch(Event())
        finally:
            supervisor.stop()
    return Exit.DONE


def _start_detached(home: Home, database: ServerKind, topic: str, output: CommandOutput) -> int:
    with home.hold_lock() as is_free:  # given back at once: the supervisor takes it
        pass
    if not is_free:
        return _already_running(home, output)
    prefetch([ServerKind.KAFKA, database])
    command = [sys.executable, "-m", "headwater.cli", "dev", "up", "--home", str(home.path)]
    command += ["--database", database.value, "--topic", topic]
    with home.log.open("wb") as log:
        supervisor = subprocess.Popen(  # noqa: S603 - ourselves, in the foreground of nobody
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
        )
    try:
        state = _wait_until_running(home, output, supervisor)
    except BaseException:
        if supervisor.poll() is None:
            supervisor.send_signal(signal.SIGTERM)
            supervisor.wait()
        raise
    instruct(output, home, state)
    output.note(f"\n`headwater dev status` shows how it is, `headwater dev down` stops it{_home_option(home)}.")
    sys.stdout.flush()
    supervisor.returncode = 0  # it isn't ours to wait for
    return Exit.DONE


def _already_running(home: Home, output: CommandOutput) -> int:
    state = _wait_until_running(home, output, None)
    output.note(f"it runs already, since {state.since} (process {state.supervisor['pid']})\n")
    instruct(output, home, state)
    return Exit.DONE


def _wait_until_running(home: Home, output: CommandOutput, supervisor: subprocess.Popen[bytes] | None) -> DevState:
    """Wait until all of it runs; say what gets ready meanwhile."""
    ready: set[str] = set()
    deadline = time.monotonic() + _PATIENCE
    while True:
        ended = supervisor is not None and supervisor.poll() is not None
        state = home.state()
        if state is not None and state.has_supervisor and _is(state, supervisor):
            for name, part in state.parts.items():
                if part.is_ready and name not in ready and supervisor is not None:
                    _say(output, f"{name:<9} is ready")
                    ready.add(name)
            if state.phase is Phase.RUNNING:
                return state
        if ended:
            raise StartError(f"it didn't start; the end of {home.log}:\n{tail(home.log, 30)}")
        if time.monotonic() > deadline:
            raise StartError(f"it doesn't come up: look into {home.log}")
        time.sleep(_POLL_SECONDS)


def _is(state: DevState, supervisor: subprocess.Popen[bytes] | None) -> bool:
    return supervisor is None or state.supervisor["pid"] == supervisor.pid


def _end_orphans(home: Home, output: CommandOutput) -> None:
    """End the servers of a supervisor that was killed. Its watchdogs do that too; nobody else's process is touched."""
    state = home.state()
    if state is None:
        return
    for name, process, gentle in state.orphans():
        _say(output, f"{name:<9} was left by a supervisor that was killed (process {process.pid}): it is ended first")
        process.terminate(signal.Signals(gentle), _LEFT_SECONDS)


def _prepare_home(home: Home, broker: str, topic: str) -> None:
    home.conf.write_text(as_file(spark_conf(broker, topic)))
    prepare_topic(broker, topic)


def prepare_topic(broker: str, topic: str) -> None:
    """Make the topic as drivers would make it, so that the writer doesn't wait for the first of them."""
    from confluent_kafka import KafkaError, KafkaException  # noqa: PLC0415
    from confluent_kafka.admin import AdminClient, NewTopic  # noqa: PLC0415

    from headwater.publishers.kafka import KafkaConfig  # noqa: PLC0415

    wanted = KafkaConfig(bootstrap_servers=broker, topic=topic)
    new = NewTopic(topic, wanted.topic_partitions, wanted.topic_replication, config=wanted.topic_settings())
    client = AdminClient({"bootstrap.servers": broker})
    try:
        client.create_topics([new])[topic].result(60)
    except KafkaException as e:
        if e.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise StartError(f"the topic {topic} can't be made: {e.args[0].str()}") from e


def _home_option(home: Home) -> str:
    """Return what to add where it isn't the usual one."""
    return "" if home.path == Home.of(None).path else f" (each with --home {home.path})"


def _say(output: CommandOutput, text: str) -> None:
    output.note(text)
    sys.stdout.flush()


@contextmanager
def until_stopped() -> Generator[None]:
    """Let Ctrl-C and SIGTERM end at once what runs here, by a KeyboardInterrupt that is quiet outside."""
    is_stopped = False

    def stop(number: int, frame: object) -> None:  # noqa: ARG001 - a handler is given both
        nonlocal is_stopped
        if not is_stopped:  # a second one doesn't break into the stopping
            is_stopped = True
            raise KeyboardInterrupt

    before = {each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except KeyboardInterrupt:
        if not is_stopped:
            raise
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
