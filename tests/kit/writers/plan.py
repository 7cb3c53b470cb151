"""What happens in a round in which writers keep a store while producers tell: everything comes out of its seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from tests.kit.kafka.plan import WEATHERS, Act, Plan, plan_of

WRITERS: Final = 2
SESSION_SECONDS: Final = 2.0
"""After which a group takes a member for dead that says nothing."""
_SPAN: Final = 3.0
_SPARK_SPAN: Final = 12.0
_MOST_EVENTS: Final = 700
_SET_BACK: Final = 0.35
"""In so many rounds the database loses its newest rows."""
_SOON: Final = 60
"""A clock that is ahead by less than this is never capped by the broker's, so its rows are those of any copy."""


@dataclass(frozen=True)
class WriterPlan:
    """One round."""

    producers: Plan
    acts: tuple[Act, ...]
    """In their order, those of the producers too."""
    batch: int
    """The most events in a transaction."""
    is_coordinated: bool
    is_by_brokers: bool
    """Whether brokers assign partitions (KIP-848), or members do."""

    @property
    def seed(self) -> int:
        return self.producers.seed

    def __str__(self) -> str:
        group = "KIP-848" if self.is_by_brokers else "classic"
        pipeline = "coordinated" if self.is_coordinated else "plain"
        return f"{replace(self.producers, acts=self.acts)}; {pipeline}, batches of {self.batch}, a {group} group"


def writer_plan_of(seed: int) -> WriterPlan:
    producers = _shortened(plan_of(seed))
    random = Random(f"writers {seed}")
    span = _SPARK_SPAN if producers.is_spark else _SPAN
    acts = [each for each in producers.acts if each.seconds < _SOON]
    for _ in range(random.choice((2, 3, 3, 4))):
        (fault,) = random.choices(tuple(_FAULTS), tuple(_FAULTS.values()))
        acts += fault(random, random.uniform(0, span))
    apart = Random(f"set back {seed}")  # so that what failed once stays what it was
    acts += _set_back(apart, apart.uniform(0, span)) if apart.random() < _SET_BACK else ()
    batch = random.choice((20, 100, 500, 5_000))
    is_coordinated, is_by_brokers = random.random() < 0.5, random.random() < 0.3
    if is_coordinated:
        acts += _process_killed(Random(f"processes {seed}"), span)
    ordered = tuple(sorted(acts, key=lambda act: act.at))
    return WriterPlan(producers, ordered, batch, is_coordinated, is_by_brokers)


def _shortened(plan: Plan) -> Plan:
    """There is more to wait for in these rounds than producers."""
    victims = (replace(each, events=min(each.events, _MOST_EVENTS)) for each in plan.victims)
    return replace(plan, victims=tuple(victims))


def _killed(random: Random, at: float) -> Sequence[Act]:
    number = random.randrange(WRITERS)
    return Act(at, "kill writer", number), Act(at + random.uniform(0, 1), "start writer", number)


def _process_killed(random: Random, span: float) -> Sequence[Act]:
    """One of a writer's own, which it begins anew."""
    return [Act(random.uniform(0, span), "kill process", random.randrange(WRITERS)) for _ in range(2)]


def _both_killed(random: Random, at: float) -> Sequence[Act]:
    back = at + random.uniform(0, 1)
    every = range(WRITERS)
    return [*(Act(at, "kill writer", each) for each in every), *(Act(back, "start writer", each) for each in every)]


def _ended(random: Random, at: float) -> Sequence[Act]:
    number = random.randrange(WRITERS)
    return Act(at, "stop writer", number), Act(at + random.uniform(0.5, 1.5), "start writer", number)


def _frozen(random: Random, at: float) -> Sequence[Act]:
    """For long enough, in two of three, that the group gives its partitions to another."""
    number = random.randrange(WRITERS)
    return Act(at, "freeze writer", number), Act(at + random.uniform(0.2, 2 * SESSION_SECONDS), "thaw writer", number)


def _database_killed(random: Random, at: float) -> Sequence[Act]:
    return Act(at, "kill database"), Act(at + random.uniform(0, 1.5), "start database")


def _database_frozen(random: Random, at: float) -> Sequence[Act]:
    return Act(at, "freeze database"), Act(at + random.uniform(0.1, 2), "thaw database")


def _session_killed(_: Random, at: float) -> Sequence[Act]:
    return [Act(at, "kill session")]


def _cut(random: Random, at: float) -> Sequence[Act]:
    return [Act(at + each * random.uniform(0, 0.5), "cut database") for each in range(random.choice((1, 3)))]


def _weather(random: Random, at: float) -> Sequence[Act]:
    """A commit whose answer never comes, or that never arrives: nobody knows which."""
    weather = WEATHERS[random.choice(tuple(WEATHERS))]
    clear = at + random.uniform(0.05, 1.5)
    return Act(at, "weather of the database", weather=weather), Act(clear, "clear the database's")


def _guest(random: Random, at: float) -> Sequence[Act]:
    return Act(at, "guest comes"), Act(at + random.uniform(0.2, 1.5), "guest goes")


def _set_back(random: Random, at: float) -> Sequence[Act]:
    """What is stored between the two is lost, as by a failover to a replica that was behind."""
    return Act(at, "back up database"), Act(at + random.uniform(0.2, 2), "set database back")


def _amnesia(_: Random, at: float) -> Sequence[Act]:
    return [Act(at, "forget")]


_FAULTS: Final[dict[Callable[[Random, float], Sequence[Act]], int]] = {
    _killed: 5,
    _both_killed: 2,
    _ended: 1,
    _frozen: 3,
    _database_killed: 1,
    _database_frozen: 1,
    _session_killed: 2,
    _cut: 2,
    _weather: 3,
    _guest: 2,
    _amnesia: 2,
}
"""With how likely each is."""
