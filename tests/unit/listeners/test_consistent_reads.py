"""The Python side of consistent reads, with Java played: who answers statements, and which sessions get a rule."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import Empty, Queue
from typing import Any

import pytest

from headwater.errors import ConfigurationError
from headwater.lens import consistent
from headwater.lens.consistent import Answering, FoundVersions, PinnedVersion, VersionFinder, to_lines

PIN = PinnedVersion("lake.db.b", "11", "one", 5, 1)


class Reads:
    """Stands for the Java object."""

    def __init__(self) -> None:
        self.questions: Queue[str] = Queue()
        self.answers: Queue[tuple[str, str]] = Queue()
        self.installed: list[object] = []
        self.is_closed = False
        self.is_broken = False

    def take(self, millis: int) -> str | None:
        if self.is_broken:
            raise ConnectionError("the JVM is gone")
        try:
            return self.questions.get(timeout=0.01)
        except Empty:
            return None

    def answer(self, number: str, text: str) -> None:
        self.answers.put((number, text))

    def install(self, session: object) -> None:
        if session == "broken":
            raise ValueError("no such field")
        self.installed.append(session)

    def close(self) -> None:
        self.is_closed = True


class Finder:
    def __init__(self, find: Callable[[Sequence[str]], FoundVersions]) -> None:
        self.find = find
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def test_what_is_found_is_lines_of_words() -> None:
    """It finds words that would break the line that they stand in."""
    found = FoundVersions((PIN, PinnedVersion("c", "15", None, None, 0)), ("d:\tis\nunknown",), ("a@20", "x@1"), ("n",))
    assert to_lines(found).split("\n") == [
        "pin\tlake.db.b\t11\tone\t5\t1",
        "pin\tc\t15\t\t-1\t0",
        "why\td: is unknown",
        "note\tn",
        "cut\ta@20, x@1",
    ]


def test_questions_are_answered_whatever_goes_wrong() -> None:
    """It finds a question that ends the thread, and one that holds up the next."""
    hanging, reads = threading.Event(), Reads()

    def find(tables: Sequence[str]) -> FoundVersions:
        if "hang" in tables:
            hanging.wait(60)
        if "bad" in tables:
            raise RuntimeError("the store is\naway.")
        return FoundVersions((PIN,))

    finder = Finder(find)
    answering = Answering(reads, lambda: finder)
    answering.start()
    for question in ("1\nhang", "2\nbad", "3\nlake.db.b\nlake.db.c"):
        reads.questions.put(question)
    answered = dict(reads.answers.get(timeout=60) for _ in range(2))
    assert answered == {"2": "why\tthe store is away", "3": "pin\tlake.db.b\t11\tone\t5\t1"}
    hanging.set()
    assert reads.answers.get(timeout=60)[0] == "1"
    answering.close()
    assert finder.closed == 1


def test_a_finder_that_cant_be_had_is_the_answer() -> None:
    def make() -> VersionFinder:
        raise ConfigurationError("it isn't known where the lineage store is")

    assert Answering(Reads(), make).answer(["b", "c"]) == "why\tit isn't known where the lineage store is"


def test_threads_end_when_the_jvm_is_gone() -> None:
    """It finds threads that ask a JVM that isn't there for ever."""
    reads = Reads()
    reads.is_broken = True
    answering = Answering(reads, lambda: Finder(lambda _: FoundVersions()))
    answering.start()
    ours = [each for each in threading.enumerate() if each.name.startswith("headwater-consistent")]
    for each in ours:
        each.join(60)
    assert not any(each.is_alive() for each in ours)


def test_any_of_its_keys_is_a_setting_of_it() -> None:
    assert consistent.has_settings({"spark.headwater.read.consistent": "false"})
    assert consistent.has_settings({"spark.headwater.read.consistent.store": "x"})
    assert consistent.has_settings({consistent.BRANCH_VERSIONS: "false"})
    assert not consistent.has_settings({"spark.headwater.enabled": "true", "spark.headwater.read": "1"})


def test_sessions_that_python_makes_get_the_rule_of_the_context_that_runs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It finds sessions of a later context that ask an earlier one, and a session that can't be made for it."""

    class Session:
        _instantiatedSession = None  # noqa: N815 - pyspark's

        def __init__(self, name: str) -> None:
            self._jsparkSession = name

    import pyspark.sql

    monkeypatch.setattr(pyspark.sql, "SparkSession", Session)
    monkeypatch.setattr(consistent, "_installed", consistent._InstalledReads())
    monkeypatch.setattr(consistent, "LensClasses", lambda _: Classes())
    java: list[Reads] = []

    class Classes:
        def new(self, name: str, *_: Any) -> Reads:
            java.append(Reads())
            return java[-1]

    class Context:
        _gateway = None

        class _jsc:  # noqa: N801 - pyspark's
            @staticmethod
            def sc() -> None: ...

    first = consistent.begin(Context(), {})
    Session("a")
    second = consistent.begin(Context(), {})
    Session("b")
    Session("broken")
    assert "no effect in this session" in caplog.text
    first.close()
    Session("c")
    second.close()
    Session("d")
    assert [each.installed for each in java] == [["a"], ["b", "c"]]
    assert all(each.is_closed for each in java)
