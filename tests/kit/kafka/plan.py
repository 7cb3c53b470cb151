"""What happens in a round of faults: everything comes out of its seed."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

from tests.kit.faults.tcp_proxy import DEAF, HALF_OPEN, REFUSED, STALLED, Weather

SPARK_EVERY: Final = 10
_LONGEST = 1.5
_HOUR = 3600
_OF_ONE: Final = (
    "start",
    "kill",
    "full",
    "room",
    *(f"{verb} writer" for verb in ("kill", "start", "stop", "freeze", "thaw")),
)
WEATHERS: Final = {
    "refused": REFUSED,
    "stalled": STALLED,
    "half-open": HALF_OPEN,
    "deaf": DEAF,
    "slow": Weather(delay=0.05, rate=50_000),
}


@dataclass(frozen=True)
class Act:
    """Something that is done, so many seconds after the first event was reported."""

    at: float
    what: str
    """start, kill, cut, weather, clear, kill broker, stop broker, start broker, full, room, clock; in rounds of writers
    also what `writer_plan` has."""
    victim: int = 0
    weather: Weather | None = None
    seconds: int = 0

    def __str__(self) -> str:
        clock = f" {self.victim} {self.seconds:+d} s"
        known = {"clock": clock} | dict.fromkeys(("weather", "weather of the database"), f" {named(self.weather)}")
        more = known.get(self.what, f" {self.victim}" if self.what in _OF_ONE else "")
        return f"{self.at:.2f} {self.what}{more}"


@dataclass(frozen=True)
class VictimPlan:
    """One producer."""

    seed: int
    events: int
    pause: float
    stop_within: float
    begins: float
    dies: float | None


@dataclass(frozen=True)
class Plan:
    """One round."""

    seed: int
    is_spark: bool
    victims: tuple[VictimPlan, ...]
    acts: tuple[Act, ...]
    """In their order."""
    by_command: bool
    """Whether what is left is shipped by `headwater spool ship`, or by a bus in this process."""
    partitions: int

    def __str__(self) -> str:
        who = f"{len(self.victims)} producers" if not self.is_spark else "a Spark driver"
        return f"seed {self.seed}: {who}; " + ", ".join(map(str, self.acts))


def named(weather: Weather | None) -> str:
    return next((name for name, each in WEATHERS.items() if each == weather), "")


def plan_of(seed: int) -> Plan:
    """The round of this seed; each tenth has a Spark driver."""
    random = Random(seed)
    is_spark = seed % SPARK_EVERY == SPARK_EVERY - 1
    victims = () if is_spark else tuple(_victim(random, number) for number in range(random.choice((1, 2, 2, 3))))
    acts = [act for number, each in enumerate(victims) for act in _generation(random, number, each)]
    for _ in range(random.choice((1, 2, 2, 3))):
        acts += _fault(random, len(victims), span=8.0 if is_spark else _LONGEST)
    acts += _broker_fault(random, is_likely=is_spark)
    ordered = tuple(sorted(acts, key=lambda act: act.at))
    return Plan(seed, is_spark, victims, ordered, random.random() < 0.3, random.choice((1, 3, 6)))


def _victim(random: Random, number: int) -> VictimPlan:
    begins = 0.0 if number == 0 else random.uniform(0, _LONGEST)
    return VictimPlan(
        seed=random.randrange(2**32),
        events=random.randint(50, 1500),
        pause=random.choice((0.0, 0.05, 0.1, 0.2)),
        stop_within=random.choice((0.3, 1.0, 3.0)),
        begins=begins,
        dies=begins + random.uniform(0.0, 2 * _LONGEST) if random.random() < 0.6 else None,
    )


def _generation(random: Random, number: int, plan: VictimPlan) -> list[Act]:
    acts = [Act(plan.begins, "start", number)] if number else []
    if plan.dies is not None:
        acts.append(Act(plan.dies, "kill", number))
    return acts


def _fault(random: Random, victims: int, span: float) -> list[Act]:
    at, lasts = random.uniform(0, span), random.uniform(0.05, _LONGEST)
    kinds = ("cut", "weather", "weather", "weather") + (("full", "clock") if victims else ())
    kind = random.choice(kinds)
    if kind == "weather":
        weather = WEATHERS[random.choice(tuple(WEATHERS))]
        return [Act(at, "weather", weather=weather), Act(at + lasts, "clear")]
    if kind == "full":
        victim = random.randrange(victims)
        return [Act(at, "full", victim), Act(at + min(lasts, 0.5), "room", victim)]
    if kind == "clock":
        jumps = (-_HOUR, -30, -1, 1, 30, _HOUR, 24 * _HOUR)
        return [Act(at, "clock", random.randrange(victims), seconds=random.choice(jumps))]
    return [Act(at, "cut")]


def _broker_fault(random: Random, *, is_likely: bool) -> list[Act]:
    if random.random() > (0.7 if is_likely else 0.25):
        return []
    at = random.uniform(0, _LONGEST)
    how = random.choice(("kill broker", "kill broker", "stop broker"))
    return [Act(at, how), Act(at + random.uniform(0, _LONGEST), "start broker")]
