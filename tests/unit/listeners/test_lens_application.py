"""A lens that every session of an application has to see through."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headwater.lens import Lens, LensError, application, put_into_sessions


class State:
    """Stands for a session's Java object."""

    def equals(self, other: object) -> bool:
        return self is other


def test_each_state_gets_one_lens_and_an_error_is_that_of_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """It finds sessions that code makes later, one that would be used without its lens, and a stream's that has it."""
    begun: list[object] = []

    class Recorded:
        def __init__(self, session: Any, asked: Lens) -> None:
            assert asked.pins == {"lake.a": 8}
            self._state = session._jsparkSession

        def is_in(self, session: Any) -> bool:
            return session._jsparkSession is clone

        def begin(self) -> None:
            if self._state is broken:
                raise LensError("this session can't")
            begun.append(self._state)

    def made(self: Any, state: State) -> None:
        self._jsparkSession = state

    one, other, broken, clone = State(), State(), State(), State()
    monkeypatch.setattr(SparkSession, "__init__", made)
    monkeypatch.setattr(application, "ActiveLens", Recorded)
    put_into_sessions(Lens(pins={"lake.a": 8}))
    sessions: Any = SparkSession
    for state in (one, one, other, clone, one):
        sessions(state)
    assert begun == [one, other]
    with pytest.raises(LensError, match="this session can't"):
        sessions(broken)


def test_a_function_makes_the_lens_with_the_first_session_and_all_of_it_ends(  # noqa: C901 - what it stands for
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It finds a lens that is asked for anew with each session, one that begins before the function is through, a
    stream that goes on in a session that is closed, and sessions that still get a lens afterwards."""
    happened: list[object] = []

    class Context:
        def isStopped(self) -> bool:  # noqa: N802 - Java's name
            return False

    class Session(State):
        def sparkContext(self) -> Context:  # noqa: N802
            return Context()

        def streams(self) -> Any:
            return SimpleNamespace(active=lambda: [SimpleNamespace(stop=lambda: happened.append(("stopped", self)))])

    class Recorded:
        def __init__(self, session: Any, asked: Lens) -> None:
            self._said = (session._jsparkSession, asked.name)

        def is_in(self, _: Any) -> bool:
            return False

        def begin(self) -> None:
            happened.append(("begin", *self._said))

        def close(self) -> None:
            happened.append(("close", *self._said))

        def refusals(self) -> tuple[str, ...]:
            return ("it was refused",)

        def end(self) -> None:
            happened.append(("end", *self._said))

    def made(self: Any, state: State) -> None:
        self._jsparkSession = state

    def ask(session: Any) -> Lens:
        happened.append(("asked", session._jsparkSession))
        return Lens(name="made")

    one, other, third, late = Session(), Session(), Session(), Session()
    monkeypatch.setattr(application, "_places_of_tables", lambda *_: [])
    monkeypatch.setattr(SparkSession, "__init__", made)
    monkeypatch.setattr(application, "ActiveLens", Recorded)
    lenses = put_into_sessions(ask)
    sessions: Any = SparkSession
    for state in (one, other, one):
        sessions(state)
    assert happened == [("asked", one), ("begin", one, "made"), ("begin", other, "made")]
    happened.clear()
    with lenses.making(Lens(name="another")):
        sessions(third)
    lenses.close()
    assert happened[:3] == [("begin", third, "another"), ("stopped", one), ("stopped", other)]
    assert happened[4:] == [("close", one, "made"), ("close", other, "made"), ("close", third, "another")]
    assert lenses.refusals() == ("it was refused",)
    happened.clear()
    lenses.end()
    sessions(late)
    assert happened == [("end", one, "made"), ("end", other, "made"), ("end", third, "another")]
    assert sessions.__init__ is made
