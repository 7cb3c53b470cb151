"""What our Java keeps of what it caught: where it arose, once with its frames, and never more than a bounded number."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.listeners.capture import jvm
from headwater.listeners.capture.jvm import JavaClasses
from tests.kit.spark.jvm import spark_classes

pytestmark = pytest.mark.spark
SOURCE = """package headwater.capture;

public final class Thrower {
    private static int walks;

    static final class Walked extends RuntimeException {
        Walked(String message) { super(message); }
        public StackTraceElement[] getStackTrace() { walks++; return super.getStackTrace(); }
    }
    static final class Mute extends RuntimeException {
        public String getMessage() { throw new IllegalStateException("no message"); }
    }

    public static String unreported() { return CaughtErrors.takeUnreported().toString(); }
    public static String unlogged() { return CaughtErrors.takeUnlogged().toString(); }
    public static String count() { return Long.toString(CaughtErrors.count()); }
    public static String walks() { return Integer.toString(walks); }
    public static void fail() {
        throw new NoSuchMethodError("'void a.B.c(int)'\\nand more");
    }
    public static void missing() {
        try {
            fail();
        } catch (Throwable e) {
            CaughtErrors.report("Thrower.missing", e);
        }
    }
    public static void reflected() throws Exception {
        CaughtErrors.reads(new Statement(7));
        try {
            Thrower.class.getMethod("fail", new Class[0]).invoke(null, new Object[0]);
        } catch (Throwable e) {
            CaughtErrors.reportUnforeseen("Thrower.reflected", e);
        }
        CaughtErrors.readsNothing();
    }
    public static void gone() {
        CaughtErrors.reportUnforeseen("Thrower.gone", new java.io.FileNotFoundException("/gone"));
        CaughtErrors.logUnforeseen("Thrower.gone", new java.io.FileNotFoundException("/gone"));
    }
    public static void again() {
        for (int i = 0; i < 3; i++) CaughtErrors.report("Thrower.again", new Walked("same"));
        CaughtErrors.report("Thrower.again", new Walked("other"));
        for (int i = 0; i < 3; i++) CaughtErrors.log("Thrower.logged", new Walked("logged " + i));
    }
    public static void mute() { CaughtErrors.report("Thrower.mute", new Mute()); }
    public static String text() { return CaughtErrors.text("Thrower.text", new Mute()); }
    public static void many() {
        for (int i = 0; i < 100; i++) CaughtErrors.report("Thrower.many", new IllegalStateException("number " + i));
    }
    public static void everywhere() {
        for (int i = 0; i < 1000; i++) CaughtErrors.log("Thrower.everywhere" + i, new IllegalStateException("x"));
    }
    public static void lengthy() {
        CaughtErrors.report("Thrower.lengthy", new IllegalStateException(new String(new char[100000])));
    }
}
"""


def line_of(text: str) -> str:
    """Where this stands in the source, as a frame says it."""
    (number,) = [n for n, line in enumerate(SOURCE.splitlines(), 1) if text in line]
    return f"Thrower.java:{number}"


@pytest.fixture(scope="module")
def gateway(java_home: Path) -> Iterator[Any]:
    with spark_classes(java_home) as found:
        yield found


@pytest.fixture(scope="module")
def shared(gateway: Any) -> Callable[[str], Any]:
    return fresh(gateway)


@pytest.fixture
def call(shared: Callable[[str], Any]) -> Callable[[str], Any]:
    """Calls a method of the source; what others have left is gone."""
    shared("unreported")
    shared("unlogged")
    return shared


def fresh(gateway: Any) -> Callable[[str], Any]:
    """Calls a method of the source in classes that nobody has used before."""
    sources = jvm.read_sources() | {"Thrower.java": SOURCE.encode()}
    gateway.jvm.java.lang.System.getProperties().remove("headwater.capture.loader")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jvm, "read_sources", lambda: sources)
        classes = JavaClasses(SimpleNamespace(_gateway=gateway, _jvm=gateway.jvm))
    return lambda method: classes.call("Thrower", method)


def taken(call: Callable[[str], Any], which: str) -> list[dict[str, Any]]:
    """What is kept by `unreported` or `unlogged` since it was taken last."""
    found: list[dict[str, Any]] = json.loads(call(which))
    return found


def test_an_error_is_reported_with_its_class_its_line_and_its_first_words(call: Callable[[str], Any]) -> None:
    before = int(call("count"))
    call("missing")
    why = f"{line_of('new NoSuchMethodError')}: java.lang.NoSuchMethodError: `void a.B.c(int)`"
    assert taken(call, "unreported") == [{"why": why}]
    (first,) = taken(call, "unlogged")
    assert (first["place"], first["why"]) == ("Thrower.missing", why)
    assert first["frames"][0] == f"headwater.capture.Thrower.fail({line_of('new NoSuchMethodError')})"
    assert len(first["frames"]) <= 12
    assert int(call("count")) == before + 1


def test_what_reflection_puts_around_an_error_is_taken_off(call: Callable[[str], Any]) -> None:
    call("reflected")
    (reported,) = taken(call, "unreported")
    assert reported["statement"] == 7
    assert reported["why"].startswith(f"{line_of('new NoSuchMethodError')}: java.lang.NoSuchMethodError: ")


def test_an_answer_is_no_error(call: Callable[[str], Any]) -> None:
    before = call("count")
    call("gone")
    assert (taken(call, "unreported"), taken(call, "unlogged"), call("count")) == ([], [], before)


def test_only_the_first_of_a_place_has_its_stack_walked(call: Callable[[str], Any]) -> None:
    call("again")
    assert call("walks") == "2"
    same, other = "headwater.capture.Thrower$Walked: same", "headwater.capture.Thrower$Walked: other"
    line = line_of('new Walked("same")')
    assert [each["why"] for each in taken(call, "unreported")] == [*[f"{line}: {same}"] * 3, f"Thrower.again: {other}"]
    assert [each["place"] for each in taken(call, "unlogged")] == ["Thrower.again", "Thrower.logged"]


def test_an_error_that_cannot_even_be_described_is_counted(call: Callable[[str], Any]) -> None:
    before = int(call("count"))
    call("mute")
    assert int(call("count")) == before + 1
    assert taken(call, "unreported") == []
    assert call("text") == "Thrower.text"
    for _ in range(50):
        call("mute")
    call("lengthy")
    assert len(taken(call, "unreported")) == 1, "those of which nothing is kept leave no room to others"


def test_what_is_kept_is_bounded(gateway: Any) -> None:
    call = fresh(gateway)
    call("many")
    assert call("count") == "100"
    assert len(taken(call, "unreported")) == 20
    call("lengthy")
    (reported,) = taken(call, "unreported")
    assert len(reported["why"]) < 5_200, "what is read of a message before secrets are masked"
    call("everywhere")
    assert 100 < len(taken(call, "unlogged")) <= 200
    call("missing")
    assert len(taken(call, "unreported")) == 1, "what is reported has room again when it was taken"
