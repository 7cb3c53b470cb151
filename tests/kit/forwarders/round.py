"""A round of faults around forwarders: their targets fail, hang, answer with errors and garbage and restart, and their
process is killed again and again, while events come. In the end each target has every event, in order per key, and
nothing is there twice that shouldn't be.
"""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Producer

from headwater.events import Event
from headwater.events.avro import Codec
from headwater.events.keys import headers_of, key_of
from headwater.forwarders.api import BusEvent, Forwarder, ForwarderContext, NoLineage
from headwater.forwarders.datahub import DataHubForwarder
from headwater.forwarders.openlineage import OpenLineageForwarder
from headwater.journal import LocalLog
from headwater.local import KafkaServer
from headwater.testing.forwarders import bus_events
from tests.kit.forwarders.datahub_server import Answer, DataHubServer, datahub_server
from tests.kit.forwarders.http_target import Fault, http_target
from tests.kit.forwarders.process import RECORDER, Arrival, ForwardProcess
from tests.kit.forwarders.stage import commit
from tests.kit.topics import new_topic
from tests.kit.waiting import attempts

JOBS: Final = 10
AT_ONCE: Final = 60
"""How many events come before each kill."""
_FAULT_SHARE: Final = 0.08
_HANG_SHARE: Final = 0.002
_KILL_SECONDS: Final = 8.0
_END_SECONDS: Final = 900.0
_REQUEST_SECONDS: Final = "2 s"

Append = Callable[[Sequence[Event]], None]


def job_commits(first: int, end: int) -> list[Event]:
    """Commits of ten jobs, each with a producer of its own."""
    return [commit(number, f"job-{number % JOBS}", producer=number % JOBS + 1) for number in range(first, end)]


@dataclass
class RandomFaults:
    """Chooses what goes wrong with a request."""

    rng: random.Random
    count: int = 0

    def judge(self, _: bytes) -> Fault | None:
        if self.rng.random() >= _FAULT_SHARE:
            return None
        self.count += 1
        if self.rng.random() < _HANG_SHARE / _FAULT_SHARE:
            return Fault(hangs=True)
        return self.rng.choice(
            [
                Fault(500),
                Fault(500, keeps=True),
                Fault(503, headers=(("Retry-After", "0"),)),
                Fault(429),
                Fault(is_garbage=True),
                Fault(is_garbage=True, keeps=True),
                Fault(),
                Fault(keeps=True),
            ]
        )


class RandomAnswers:
    """In place of the answers that a DataHub server has prepared."""

    def __init__(self, faults: RandomFaults) -> None:
        self._faults = faults
        self._next: Answer | None = None

    def __bool__(self) -> bool:
        fault = self._faults.judge(b"")
        status = 500 if fault is None or not fault.status else fault.status
        self._next = None if fault is None else Answer(status, stores=fault.keeps)
        return self._next is not None

    def popleft(self) -> Answer | None:
        return self._next


@dataclass
class RoundOutcome:
    """What a round did, all of which is checked."""

    events: int = 0
    kills: int = 0
    faults: int = 0
    restarts: int = 0
    copies: dict[str, int] = field(default_factory=dict)
    """Messages that came more than once, by target."""
    seconds: float = 0.0

    def __str__(self) -> str:
        copies = ", ".join(f"{name} {count}" for name, count in self.copies.items())
        return (
            f"{self.events} events, {self.kills} kills, {self.faults} faults of requests, {self.restarts} restarts of "
            f"servers: 0 lost, 0 out of order; messages that came again: {copies}; {self.seconds:.0f} s"
        )


class ForwardRound:
    """Targets, and one process after another that forwards to them."""

    def __init__(self, folder: Path, seed: int, bus: str, append: Append, *flags: str) -> None:
        self.outcome: Final = RoundOutcome()
        self._rng = random.Random(seed)
        self._folder = folder
        self._bus = bus
        self._append = append
        self._flags = flags
        self._events: list[Event] = []

    def play_and_check(self, kills: int, at_once: int = AT_ONCE, *, with_datahub: bool = True) -> RoundOutcome:
        """Kill the process so often, let it come to the end, and check what each target has."""
        began = time.monotonic()
        with ExitStack() as stack:
            self._open(stack, with_datahub=with_datahub)
            with self._restarting():
                for _ in range(kills):
                    self._more(at_once)
                    self._run_and_kill()
            with self._process("--until-end") as process:
                assert process.wait(_END_SECONDS) == 0, "it didn't come to the end"
            self._check()
        self.outcome.events, self.outcome.faults = len(self._events), self._faults.count
        self.outcome.seconds = time.monotonic() - began
        return self.outcome

    def _open(self, stack: ExitStack, *, with_datahub: bool) -> None:
        self._faults = RandomFaults(self._rng)
        self._openlineage = stack.enter_context(http_target())
        self._webhook = stack.enter_context(http_target())
        self._datahub: DataHubServer | None = None
        self._openlineage.judge = self._webhook.judge = self._faults.judge
        slow = {"batch": "5", "request.timeout": _REQUEST_SECONDS}
        self._forwarders = {
            "openlineage": {"url": self._openlineage.url, **slow},
            "webhook": {"url": self._webhook.url, **slow},
            "recorder": {"type": RECORDER, "file": str(self._folder / "recorded")},
        }
        if with_datahub:
            self._datahub = stack.enter_context(datahub_server())
            answers: Any = RandomAnswers(self._faults)
            self._datahub.answers = answers
            self._forwarders["datahub"] = {"url": self._datahub.url, **slow}

    def _process(self, *flags: str) -> ForwardProcess:
        return ForwardProcess(self._bus, self._folder / "state", self._forwarders, *self._flags, *flags)

    def _more(self, count: int) -> None:
        first = len(self._events) + 1
        events = job_commits(first, first + count)
        self._append(events)
        self._events += events

    def _run_and_kill(self) -> None:
        """Kill it in the midst of sending: after so many more requests, or events recorded."""
        target = self._rng.choice([self._openlineage, self._webhook])
        wanted = target.requests + self._rng.randrange(1, 40)
        deadline = time.monotonic() + _KILL_SECONDS
        with self._process() as process:
            for _ in attempts("requests", 2 * _KILL_SECONDS, 0.002):
                if target.requests >= wanted or time.monotonic() > deadline:
                    break
                assert process.process.poll() is None, f"it ended by itself: see {self._folder / 'state.log'}"
            process.kill()
        self.outcome.kills += 1

    @contextmanager
    def _restarting(self) -> Generator[None]:
        """Stop and start the servers at random."""
        is_over = threading.Event()
        rng = random.Random(self._rng.random())

        def restart() -> None:
            while not is_over.wait(rng.uniform(0.5, 4.0)):
                with rng.choice([self._openlineage, self._webhook]).away():
                    self.outcome.restarts += 1
                    is_over.wait(rng.uniform(0.0, 0.5))

        thread = threading.Thread(target=restart)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()

    def _check(self) -> None:
        wanted = _ids_by_key(self._events)
        self._check_order("recorder", Arrival([self._folder / "recorded"]).by_key(), wanted)
        self.outcome.copies["recorder"] = Arrival([self._folder / "recorded"]).copies
        self._check_openlineage()
        found = [_cloud_event_id(body) for body in self._webhook.received]
        self.outcome.copies["webhook"] = len(found) - len(set(found))
        key_by_id = {str(event.event_id): key_of(event).hex() for event in self._events}
        self._check_order("webhook", _by_key(found, key_by_id), wanted)
        if self._datahub is not None:
            self._check_datahub(self._datahub)

    def _check_openlineage(self) -> None:
        forwarder = OpenLineageForwarder(ForwarderContext("x", {"file": "unused"}, NoLineage()))
        wanted: dict[str, list[str]] = defaultdict(list)
        key_by_message: dict[str, str] = {}
        for event in self._events:
            for text in forwarder.preview(event):
                message = _canonical(text)
                wanted[key_of(event).hex()].append(message)
                key_by_message[message] = key_of(event).hex()
        found = [_canonical(body) for body in self._openlineage.received]
        self.outcome.copies["openlineage"] = len(found) - len(set(found))
        self._check_order("openlineage", _by_key(found, key_by_message), dict(wanted))

    def _check_datahub(self, server: DataHubServer) -> None:
        """What it holds is what one without faults holds that gets the same events once."""
        with datahub_server() as other:
            forwarder = DataHubForwarder(ForwarderContext("datahub", {"url": other.url}, NoLineage()))
            asyncio.run(_handle(forwarder, bus_events(self._events)))
            assert server.aspects == other.aspects
            assert server.entries == other.entries

    def _check_order(self, name: str, found: dict[str, list[str]], wanted: dict[str, list[str]]) -> None:
        for key, expected in wanted.items():
            arrived = found.get(key, [])
            missing = [each for each in expected if each not in set(arrived)]
            assert not missing, f"{name}: {len(missing)} of {key} never arrived, the first is {missing[0]}"
            assert arrived == expected, f"{name}: events of {key} changed places"
        assert found.keys() == wanted.keys(), name


async def _handle(forwarder: Forwarder, events: Sequence[BusEvent]) -> None:
    await forwarder.handle(events)
    await forwarder.close()  # type: ignore[attr-defined]


def _ids_by_key(events: Iterable[Event]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for event in events:
        found[key_of(event).hex()].append(str(event.event_id))
    return dict(found)


def _by_key(arrived: Iterable[str], keys: dict[str, str]) -> dict[str, list[str]]:
    """What arrived by its key, of copies the first."""
    found: dict[str, list[str]] = defaultdict(list)
    for each in dict.fromkeys(arrived):
        found[keys.get(each, "nobody's")].append(each)
    return dict(found)


def _canonical(text: str | bytes) -> str:
    return json.dumps(json.loads(text), sort_keys=True)


def _cloud_event_id(body: bytes) -> str:
    told: Any = json.loads(body)
    return str(told["id"])


INSTANCE = "group.instance.id=forward-rounds"
"""Who follows one that was killed is the same member, so that it has its partitions at once."""


def log_bus(folder: Path) -> tuple[str, Append]:
    """A local log, and what appends to it."""
    place = folder / "log"

    def append(events: Sequence[Event]) -> None:
        with LocalLog.open(place).writer() as journal:
            for event in events:
                journal.append(Codec().encode(event), key=key_of(event), headers=headers_of(event, bytes(8)))

    return f"log:{place}", append


def kafka_bus(server: KafkaServer) -> tuple[str, Append]:
    """A topic of three partitions, and what appends to it."""
    topic = new_topic(server.address, "forward-rounds", 3, {})
    producer = Producer({**server.client_config(), "enable.idempotence": True})

    def append(events: Sequence[Event]) -> None:
        for event in events:
            headers: Any = list(headers_of(event, bytes(8)))
            producer.produce(topic, Codec().encode(event), key_of(event), headers=headers)
        assert producer.flush(60) == 0

    return f"kafka://{server.address}/{topic}", append
