"""A round of faults: producers tell events, things happen to them, to the network and to the broker, and then
everything that was reported is on the topic."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Thread

from headwater.local.java import java
from tests.kit.faults.spark_round import SparkVictim, check_tables
from tests.kit.faults.tcp_proxy import CLEAR
from tests.kit.kafka.conf import kafka_conf
from tests.kit.kafka.plan import Act, Plan
from tests.kit.kafka.shipping import ship_by_bus, ship_by_command, spools_in
from tests.kit.kafka.stage import Stage, new_topic
from tests.kit.kafka.topic_check import Verdict, check_topic
from tests.kit.kafka.topic_copies import Copy
from tests.kit.kafka.victims import Victim

GRACE = 30.0
"""By which a call may overstay its time, on a machine that does other things too."""


class Round:
    """One round in a folder of its own, on a topic of its own: what happens to producers and the broker, and what has
    to be on the topic then. `tests.kit.writers.round` plays it."""

    def __init__(self, plan: Plan, stage: Stage, folder: Path, more: Mapping[str, str] | None = None) -> None:
        self.plan, self.stage, self.folder = plan, stage, folder
        self.topic, self.spools = new_topic(), folder / "spools"
        self.conf = {**kafka_conf(stage.address, self.topic, self.spools), **(more or {})}
        self.victims: dict[int, Victim] = {}
        self._drivers: list[SparkVictim] = []
        self._starting: Thread | None = None

    def _start_first(self) -> None:
        if self.plan.is_spark:
            self._drivers.append(SparkVictim(self.folder / "driver", java().home, self.conf, self.plan.seed))
        else:
            self.start(0)
        first: Victim | SparkVictim = self._drivers[0] if self.plan.is_spark else self.victims[0]
        first.wait_until_it_tells()

    def _act(self, acts: Sequence[Act]) -> None:
        began = time.monotonic()
        for act in acts:
            time.sleep(max(0.0, began + act.at - time.monotonic()))  # the moment is the round's, nothing is waited for
            self.do(act)

    def do(self, act: Act) -> None:
        _DO[act.what](self, act)

    def start(self, number: int) -> None:
        plan = self.plan.victims[number]
        self.victims[number] = Victim(
            self.folder / f"victim{number}",
            self.conf,
            seed=plan.seed,
            events=plan.events,
            pause=plan.pause,
            stop_within=plan.stop_within,
        )

    def kill(self, act: Act) -> None:
        self.victims[act.victim].wait_until_it_tells()
        self.victims[act.victim].kill()

    def start_broker(self) -> None:
        """On another thread: the network may have to clear up before anybody can see that the broker is there."""
        self._starting = Thread(target=self.stage.broker.start, name="starting-broker")
        self._starting.start()

    def set_full(self, act: Act) -> None:
        if (victim := self.victims.get(act.victim)) is not None:
            victim.wait_until_it_tells()  # a driver that finds no room when it begins has no spool, and says so
            victim.set_full(is_full=act.what == "full")

    def set_clock(self, act: Act) -> None:
        if act.victim in self.victims:
            self.victims[act.victim].set_clock(act.seconds)

    def _kill_victims(self) -> None:
        victims: list[Victim | SparkVictim] = [*self.victims.values(), *self._drivers]
        for victim in victims:
            victim.kill()

    def _come_back(self) -> None:
        self.stage.proxy.turn(CLEAR)
        if self._starting is not None:
            self._starting.join()
            self._starting = None
        self.stage.come_back()

    def _end_victims(self) -> float:
        """Those that weren't killed come to their end, and say the truth about it; the longest that a tell took."""
        longest = 0.0
        for driver in self._drivers:
            driver.end()
        for victim in self.victims.values():
            victim.set_full(is_full=False)
            if victim.was_killed:
                continue
            done = victim.end()
            longest = max(longest, done.longest_tell)
            assert done.stop_seconds < victim.stop_within + GRACE, f"stop took {done.stop_seconds:.1f} s"
            mine = [str(victim.emitted[-1].id.producer)] if victim.emitted else []
            left = [each.name for each in spools_in(self.spools) if each.name.endswith(tuple(mine))]
            assert not (done.complete and left), f"stop said that all went out, and left {left}"
        return longest

    def _ship(self) -> None:
        (ship_by_command if self.plan.by_command else ship_by_bus)(self.conf, self.spools)

    def _check(self, copies: Sequence[Copy]) -> Verdict:
        emitted = [each for victim in self.victims.values() for each in victim.emitted]
        if self.plan.is_spark:
            check_tables(copies)
            return check_topic(emitted, copies, unnoted=len(copies))
        return check_topic(emitted, copies, unnoted=_MOST_PARTS)


_MOST_PARTS = 4
"""An event that was reported and not noted, because the kill came between the two, may be one in so many parts."""
_DO: Mapping[str, Callable[[Round, Act], object]] = {
    "start": lambda each, act: each.start(act.victim),
    "kill": Round.kill,
    "cut": lambda each, _: each.stage.proxy.cut(),
    "weather": lambda each, act: each.stage.proxy.turn(act.weather or CLEAR),
    "clear": lambda each, _: each.stage.proxy.turn(CLEAR),
    "kill broker": lambda each, _: each.stage.broker.kill(),
    "stop broker": lambda each, _: each.stage.stop_broker(),
    "start broker": lambda each, _: each.start_broker(),
    "full": Round.set_full,
    "room": Round.set_full,
    "clock": Round.set_clock,
}
