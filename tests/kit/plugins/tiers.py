"""Which tests a run plays, and in which order: the tiers of `make check`, `make test` and `make test-all`.

A test that is marked `long` is left out of `make test` and belongs to a slice of `make test-all`. A family of cases
that all look for the same kind of fault is marked `sample(5)`: five of them, spread over the family, stay in `make
test`, the others become `long`. `sample(5, keep=("renames", "views"))` names cases that are among the five. In the
`pytestmark` of a module it is about all tests of the module.

Modules that share something that takes seconds to start, such as a Spark driver, are in one group:
`pytestmark = pytest.mark.xdist_group("delta")`. Without that mark a module is its own group. A group stays in one
worker, and the groups that take longest start first, as `tests/durations.json` knows them (`--record-durations` writes
it): for each module the mean of its tests of each tier, so that a module's long tests count only where they are played.
The groups are ours to keep: what xdist does itself for that mark has no effect with pytest 9.

`--slice 3/12` keeps the third of twelve parts that take about the same time.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Container, Generator, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling

ROOT: Final = Path(__file__).parents[3]
DURATIONS: Final = ROOT / "tests" / "durations.json"
FAST, USUAL, LONG = "fast", "usual", "long"
UNKNOWN_SECONDS: Final = {FAST: 0.01, USUAL: 0.5, LONG: 10.0}
"""What a test of each tier is taken to last in a module that nobody has measured."""
NOT_FAST: Final = frozenset({"slow", "spark", "kafka", "database"})
Durations = Mapping[str, Mapping[str, float]]
"""Seconds that a test of a module and a tier takes on average."""
LARGEST_CHUNK: Final = 60.0
"""A group that takes longer, in seconds, is cut when slices are made; each piece starts what it shares anew."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tiers")
    group.addoption(
        "--slice", metavar="K/N", type=slice_of, help="play the K-th of N parts that take about the same time"
    )
    group.addoption("--record-durations", metavar="FILE", type=Path, help="write how long each module's tests took")


def slice_of(text: str) -> tuple[int, int]:
    """`3/12` as (3, 12)."""
    number, _, count = text.partition("/")
    try:
        found = int(number), int(count)
    except ValueError:
        found = 0, 0
    if not 1 <= found[0] <= found[1]:
        raise argparse.ArgumentTypeError(f"a slice is K/N with 1 <= K <= N, such as 3/12, not {text!r}")
    return found


def pytest_configure(config: pytest.Config) -> None:
    path: Path | None = config.getoption("--record-durations")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(path, modules_of_tests(config)), "durations")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the rest of each sampled family as long."""
    mark_samples(items)


@pytest.hookimpl(wrapper=True, tryfirst=True, specname="pytest_collection_modifyitems")
def pytest_order_what_is_left(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, None, None]:
    """Of what all that chooses tests by mark or name has left, keep one slice, and put the longest group first."""
    yield
    durations = read_durations(config.rootpath / DURATIONS.relative_to(ROOT))
    wanted: tuple[int, int] | None = config.getoption("--slice")
    if wanted is not None:
        kept = set(map(id, slices(items, wanted[1], durations)[wanted[0] - 1]))
        config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
        items[:] = [item for item in items if id(item) in kept]
    items[:] = longest_first(items, durations)


def mark_samples(items: Iterable[pytest.Item]) -> None:
    """Mark as `long` what `sample` leaves out: of the cases of a function, or of all tests of a module."""
    functions, modules = defaultdict[str, list[pytest.Item]](list), defaultdict[str, list[pytest.Item]](list)
    marks = dict[str, pytest.Mark]()
    for item in items:
        for node, mark in item.iter_markers_with_node("sample"):
            is_of_module = isinstance(node, pytest.Module)
            name = module_of(item) if is_of_module else item.nodeid.partition("[")[0]
            (modules if is_of_module else functions)[name].append(item)
            marks.setdefault(name, mark)
    for name, family in functions.items():
        keep_sample(family, marks[name])
    for name, family in modules.items():
        keep_sample([item for item in family if not item.get_closest_marker("long")], marks[name])


def keep_sample(family: list[pytest.Item], mark: pytest.Mark) -> None:
    """Mark as `long` all of a family but so many, those first that a mark names by case or function."""
    # The order of collection is drawn anew for each run; the choice is the same in all of them.
    family.sort(key=lambda item: item.nodeid)
    kept = [item for item in family if names_of(item) & named_to_keep(item)]
    others = [item for item in family if item not in kept]
    kept += [others[index] for index in spread(len(others), mark.args[0] - len(kept))]
    for item in set(family) - set(kept):
        item.add_marker(pytest.mark.long)


def named_to_keep(item: pytest.Item) -> set[str]:
    """What the marks of its function and of its module name: the module's leaves in what the function's keeps."""
    return {name for mark in item.iter_markers("sample") for name in mark.kwargs.get("keep", ())}


def spread(count: int, wanted: int) -> list[int]:
    """So many indexes below count, with equal distances."""
    if wanted >= count:
        return list(range(count))
    return [index * count // wanted for index in range(max(0, wanted))]


def module_of(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def names_of(item: pytest.Item) -> set[str]:
    """What a test is called by: its function and its case."""
    function, _, case = item.name.partition("[")
    return {function, case.removesuffix("]")}


@cache
def group_of(module: Path) -> str:
    """The group that a module names, else its path."""
    found = _GROUP.search(module.read_text(encoding="utf-8"))
    return found[1] if found else str(module)


_GROUP: Final = re.compile(r'^pytestmark = (?:\[[^\]]*|.*)\bxdist_group\("([\w-]+)"\)', re.MULTILINE)


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc] # xdist has no types for it
    """Gives each worker whole groups, in the order in which they come."""

    def _split_scope(self, nodeid: str) -> str:
        root: Path = self.config.rootpath
        return group_of(root / nodeid.partition("::")[0])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> GroupScheduling:
    """Schedule by groups, whatever `--dist` says."""
    return GroupScheduling(config, log)


def read_durations(path: Path = DURATIONS) -> Durations:
    """What `--record-durations` wrote; nothing where there is no such file."""
    if not path.exists():
        return {}
    durations: dict[str, dict[str, float]] = json.loads(path.read_text(encoding="utf-8"))
    return durations


def tier_of(keywords: Container[str]) -> str:
    """Which tier plays a test that has these among its keywords."""
    if LONG in keywords:
        return LONG
    return USUAL if any(mark in keywords for mark in NOT_FAST) else FAST


def length(items: Iterable[pytest.Item], durations: Durations) -> float:
    """How many seconds the tests take together."""
    found = 0.0
    for item in items:
        tier = tier_of(item.keywords)
        found += durations.get(module_of(item), {}).get(tier, UNKNOWN_SECONDS[tier])
    return found


def grouped(items: Iterable[pytest.Item]) -> list[list[pytest.Item]]:
    """The tests by group; modules of a group stay together, in the order they come."""
    groups = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        groups[group_of(item.path)].append(item)
    return list(groups.values())


def longest_first(items: Iterable[pytest.Item], durations: Durations) -> list[pytest.Item]:
    """The same tests, whole groups after each other, those that take longest first."""
    groups = sorted(grouped(items), key=lambda group: -length(group, durations))
    return [item for group in groups for item in group]


def slices(items: Sequence[pytest.Item], count: int, durations: Durations) -> list[list[pytest.Item]]:
    """So many parts of about the same length; a group is cut only where it is longer than the largest chunk."""
    # In an order that doesn't depend on the run's seed: each part is the same in every run.
    steady = sorted(items, key=lambda item: item.nodeid)
    chunks = [chunk for group in grouped(steady) for chunk in cut(group, durations)]
    chunks.sort(key=lambda chunk: (-length(chunk, durations), chunk[0].nodeid))
    parts: list[list[pytest.Item]] = [[] for _ in range(count)]
    lengths = [0.0] * count
    for chunk in chunks:
        shortest = lengths.index(min(lengths))
        parts[shortest] += chunk
        lengths[shortest] += length(chunk, durations)
    return parts


def cut(group: Sequence[pytest.Item], durations: Durations) -> list[list[pytest.Item]]:
    pieces = max(1, round(length(group, durations) / LARGEST_CHUNK))
    size = -(-len(group) // pieces)
    return [list(group[start : start + size]) for start in range(0, len(group), size)]


def modules_of_tests(config: pytest.Config) -> set[str]:
    """All modules of tests that there are, whichever this run plays."""
    folders = config.getini("testpaths") or ["."]
    found = {path for folder in folders for path in (config.rootpath / folder).rglob("test_*.py")}
    return {path.relative_to(config.rootpath).as_posix() for path in found}


class Recorder:
    """Writes the mean duration of each module's tests of each tier, set-up and tear-down included, drops modules that
    are gone, and says which ones nobody has measured yet."""

    def __init__(self, path: Path, modules: set[str]) -> None:
        self._path = path
        self._modules = modules
        self._seconds = defaultdict[tuple[str, str], float](float)
        self._tests = defaultdict[tuple[str, str], set[str]](set)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        key = report.nodeid.partition("::")[0], tier_of(report.keywords)
        self._seconds[key] += report.duration
        self._tests[key].add(report.nodeid)

    @pytest.hookimpl(tryfirst=True)  # the summary is printed by another one of these
    def pytest_sessionfinish(self) -> None:
        before = read_durations(self._path)
        known = {module: dict(before[module]) for module in before if module in self._modules}
        for (module, tier), tests in self._tests.items():
            known.setdefault(module, {})[tier] = round(self._seconds[module, tier] / len(tests), 3)
        self._path.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        self._modules -= known.keys()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._modules:
            terminalreporter.section(f"{len(self._modules)} modules that {self._path.name} doesn't know yet")
            for module in sorted(self._modules):
                terminalreporter.line(module)
