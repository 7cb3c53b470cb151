"""`headwater up`: broker, database and writer, in the foreground or left running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from threading import Event
from typing import Any, Final

from headwater.cli.exits import Exit
from headwater.cli.flags import variable_of
from headwater.cli.output import Output
from headwater.cli.whole.home import Home, Phase, State
from headwater.cli.whole.keeper import Keeper
from headwater.cli.whole.telling import DATABASES, as_file, spark_conf, tell_how
from headwater.errors import ConfigurationError
from headwater.local import Kind, StartError, prefetch
from headwater.local.process import tail

_POLL_SECONDS: Final = 0.1
_PATIENCE: Final = 300.0
_LEFT_SECONDS: Final = 20.0


def bring_up(given: Any, output: Output) -> int:
    """See `headwater up --help`."""
    home = Home.of(given.home).made()
    database = _database(home, given.database)
    if given.detach:
        return _detached(home, database, given.topic, output)
    with home.held() as is_ours:
        if is_ours:
            return _kept(home, database, given.topic, output)
    return _told_running(home, output)


def _database(home: Home, wanted: str | None) -> Kind:
    """The one that a home has its store in stays."""
    state = home.state()
    there = next((name for name in DATABASES if state and name in state.parts), None)
    if wanted and there and wanted != there:
        raise ConfigurationError(f"the store of {home.path} is in {there}: take another --home for one in {wanted}")
    return Kind(wanted or there or Kind.POSTGRES.value)


def _kept(home: Home, database: Kind, topic: str, output: Output) -> int:
    """In the foreground; the lock is ours."""
    with until_told() as told:
        _end_what_was_left(home, output)
        _say(output, f"starting kafka, {database.value} and the writer in {home.path} …")
        keeper = Keeper(home, database, topic, lambda text: _say(output, text))
        keeper.start(lambda broker: _prepared(home, broker, topic))
        try:
            tell_how(output, home, keeper.state)
            _say(output, "\nCtrl-C stops them; what they have is there again next time.")
            keeper.watch(told)
        finally:
            keeper.stop()
    return Exit.DONE


def _detached(home: Home, database: Kind, topic: str, output: Output) -> int:
    with home.held() as is_free:  # given back at once: the keeper takes it
        pass
    if not is_free:
        return _told_running(home, output)
    prefetch([Kind.KAFKA, database])
    command = [sys.executable, "-m", "headwater.cli", "up", "--home", str(home.path)]
    command += ["--database", database.value, "--topic", topic]
    environment = {name: value for name, value in os.environ.items() if name != variable_of("detach")}
    with home.log.open("wb") as log:
        keeper = subprocess.Popen(  # noqa: S603 - ourselves, in the foreground of nobody
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
            env=environment,
        )
    try:
        state = _awaited(home, output, keeper)
    except BaseException:
        if keeper.poll() is None:
            keeper.send_signal(signal.SIGTERM)
            keeper.wait()
        raise
    tell_how(output, home, state)
    output.note(f"\n`headwater status` looks after it, `headwater down` stops it{_named(home)}.")
    sys.stdout.flush()
    keeper.returncode = 0  # it isn't ours to wait for
    return Exit.DONE


def _told_running(home: Home, output: Output) -> int:
    state = _awaited(home, output, None)
    output.note(f"it runs already, since {state.since} (process {state.keeper['pid']})\n")
    tell_how(output, home, state)
    return Exit.DONE


def _awaited(home: Home, output: Output, keeper: subprocess.Popen[bytes] | None) -> State:
    """Until all of it runs; what gets ready is told."""
    told: set[str] = set()
    deadline = time.monotonic() + _PATIENCE
    while True:
        ended = keeper is not None and keeper.poll() is not None
        state = home.state()
        if state is not None and state.has_keeper and (keeper is None or state.keeper["pid"] == keeper.pid):
            for name, part in state.parts.items():
                if part.is_ready and name not in told and keeper is not None:
                    _say(output, f"{name:<9} is ready")
                    told.add(name)
            if state.phase is Phase.RUNNING:
                return state
        if ended:
            raise StartError(f"it didn't start; the end of {home.log}:\n{tail(home.log, 30)}")
        if time.monotonic() > deadline:
            raise StartError(f"it doesn't come up: look into {home.log}")
        time.sleep(_POLL_SECONDS)


def _end_what_was_left(home: Home, output: Output) -> None:
    """Of a keeper that was killed. Its watchdogs do that too; nobody else's process is touched."""
    state = home.state()
    if state is None:
        return
    for name, process, gentle in state.left():
        _say(output, f"{name:<9} was left by a keeper that is gone (process {process.pid}): it is ended first")
        process.end(signal.Signals(gentle), _LEFT_SECONDS)


def _prepared(home: Home, broker: str, topic: str) -> None:
    home.conf.write_text(as_file(spark_conf(broker, topic)))
    prepare_topic(broker, topic)


def prepare_topic(broker: str, topic: str) -> None:
    """The topic as drivers would make it, so that the writer doesn't wait for the first of them."""
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


def _named(home: Home) -> str:
    """What to add where it isn't the usual one."""
    return "" if home.path == Home.of(None).path else f" (each with --home {home.path})"


def _say(output: Output, text: str) -> None:
    output.note(text)
    sys.stdout.flush()


@contextmanager
def until_told() -> Generator[Event]:
    """Set by Ctrl-C and by SIGTERM. While servers start, either ends that at once."""
    told = Event()

    def tell(number: int, frame: object) -> None:  # noqa: ARG001 - a handler is given both
        if not told.is_set():  # a second one doesn't break into the stopping
            told.set()
            raise KeyboardInterrupt

    before = {each: signal.signal(each, tell) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield told
    except KeyboardInterrupt:
        if not told.is_set():
            raise
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
