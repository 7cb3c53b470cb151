"""What the Java side reaches by reflection is declared, and what is declared is reached: each read has its probe."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from headwater.jvm.bundled import ArchiveFacts
from headwater.jvm.loader import ClassOrigin, LoaderState
from headwater.listeners import capture
from headwater.listeners.capture.jvm import DegradedPart
from headwater.listeners.capture.self_test import ReflectionTable, SelfTest, parse_reflection

HERE: Final = Path(capture.__file__).parent
FOLDERS: Final = sorted(path.parent for path in HERE.rglob("java/*.java") if path.name.endswith("Extractor.java"))
SEARCHING: Final = {"SelfTest"}
"""What looks for the members that are declared."""
READS: Final = re.compile(
    r"LazyFields\.(?:value|optional|has|field)\("
    r"|\b(?:get(?:Declared)?(?:Method|Field|Constructor)s?|forName|loadClass|find(?:Virtual|Static|Getter|Setter))\("
)
LITERAL: Final = re.compile(r'"([^"]*)"')


def arguments(text: str, start: int) -> list[str]:
    """The arguments of the call whose bracket was opened before `start`."""
    found, depth, inside = [""], 0, False
    for each in text[start:]:
        inside ^= each == '"'
        depth += 0 if inside else (each in "([{") - (each in ")]}")
        if depth < 0:
            return [part.strip() for part in found if part.strip()]
        if each == "," and depth == 0 and not inside:
            found.append("")
        else:
            found[-1] += each
    raise AssertionError("a bracket isn't closed")


def reads_of(source: str, text: str) -> Iterator[tuple[str, str]]:
    """By call of reflection the expression that says the member's name, and the name where it is known."""
    for call in READS.finditer(text):
        given = arguments(text, call.end())
        if "Constructor" in call[0]:
            yield "new", "new"
            continue
        expression = "fields" if not given else given[1] if call[0].startswith("LazyFields") else given[0]
        constant = re.search(rf'String {re.escape(expression)} =\s+"([^"]*)"', text)
        literal = LITERAL.fullmatch(expression)
        yield expression, literal[1] if literal else constant[1] if constant else ""


def table_of(folder: Path) -> ReflectionTable:
    return parse_reflection((folder / "reflection.txt").read_text("utf-8"))


@pytest.mark.parametrize("folder", sorted(set(FOLDERS)), ids=lambda each: each.parent.name)
def test_what_is_reached_by_reflection_is_declared(folder: Path) -> None:
    """Nothing else notices a read that nobody looks for, before its name has changed."""
    table = table_of(folder)
    declared = {(each.source, name.partition("(")[0]) for each in table.members for name in each.names}
    known = {(each.source, each.expression) for each in table.undeclared}
    for path in folder.glob("*.java"):
        if path.stem not in SEARCHING:
            for expression, name in reads_of(path.stem, path.read_text("utf-8")):
                is_declared = (path.stem, name) in declared or (path.stem, expression) in known
                assert is_declared, f"{path.name} reads {expression}: declare it in {folder.parent.name}/reflection.txt"


@pytest.mark.parametrize("folder", sorted(set(FOLDERS)), ids=lambda each: each.parent.name)
def test_what_is_declared_is_reached(folder: Path) -> None:
    """A probe of what nobody reads any more would report a loss that isn't one."""
    table = table_of(folder)
    for member in table.members:
        text = (folder / f"{member.source}.java").read_text("utf-8")
        for name in (each.partition("(")[0] for each in member.names):
            assert name == "new" or f'"{name}"' in text, f"{member.source} doesn't read {name}"
    for each in table.undeclared:
        text = (folder / f"{each.source}.java").read_text("utf-8")
        assert each.why
        assert each.expression in {expression for expression, _ in reads_of(each.source, text)}, each


def test_what_is_missing_is_named_with_its_jar_and_version(caplog: pytest.LogCaptureFixture) -> None:
    """Of each source, in one text: what can't be found, where, and what to do. A Spark nobody tests is told the sum."""
    texts: list[str] = []

    def new(name: str, declared: str, known: str) -> Any:
        texts.append(declared)
        return SimpleNamespace(start=lambda: None, missing=lambda _: f"{place}\tlib-1.jar\n{place + 1}\t\n")

    java: Any = SimpleNamespace(new=new, state=LoaderState())
    SelfTest(java, ["Iceberg"])
    lines = texts[0].splitlines()
    assert not any("org.apache.iceberg" in line for line in lines)
    place = next(n for n, line in enumerate(lines) if line.startswith("org.apache.spark.scheduler.AsyncEventQueue\t"))
    test = SelfTest(java, ["Iceberg"])
    (part,) = test.finish("9.9.9")
    assert part == DegradedPart("SqlExecutionListener", part.why, is_there=True)
    assert str(part) == (
        "SqlExecutionListener doesn't find all that it reads: org.apache.spark.scheduler.AsyncEventQueue.name; "
        "org.apache.spark.scheduler.AsyncEventQueue.post(org.apache.spark.scheduler.SparkListenerEvent) can't be found "
        "in lib-1.jar (Spark 9.9.9): each statement that needs it has a Gap; please report it with these versions"
    )
    number = len(lines)
    summary = f"Spark 9.9.9: {number - 2} of {number} members that are read by reflection are there"
    assert [each.getMessage() for each in caplog.records if each.levelname == "WARNING"] == [summary]


def test_what_an_archive_knows_is_not_looked_for_again() -> None:
    """Neither what it knows to be missing, which is said again, nor what it knows to be there."""
    asked: list[tuple[str, str]] = []
    line = "SqlExecutionListener\torg.apache.spark.scheduler.AsyncEventQueue\tname\t-"
    absent = "IntendedTargets\torg.apache.spark.connect.proto.SQL\tgetQuery()\t?"
    facts = ArchiveFacts(missing=(f"{line}\tlib-1.jar",), absent=(absent,))

    def new(name: str, declared: str, known: str) -> Any:
        asked.append((declared, known))
        return SimpleNamespace(start=lambda: None, missing=lambda _: "0\t?\n")

    java: Any = SimpleNamespace(new=new, state=LoaderState(ClassOrigin.WHEEL, facts))
    test = SelfTest(java, [])
    (part,) = test.finish("3.5.7")
    assert "AsyncEventQueue.name can't be found in lib-1.jar" in part.why
    assert asked == [(absent.partition("\t")[2], "org.apache.spark.scheduler.AsyncEventQueue.name")]
    assert (test.missing, test.absent) == (facts.missing, facts.absent)


def test_a_self_test_without_an_end_is_reported() -> None:
    def new(*_: object) -> Any:
        return SimpleNamespace(start=lambda: None, missing=lambda _: None)

    stuck: Any = SimpleNamespace(new=new, state=LoaderState())
    (part,) = SelfTest(stuck, []).finish("9.9.9")
    assert str(part).startswith("SelfTest isn't there")


# What Janino makes of a source that javac would make something else of.


SOURCES = sorted(
    Path(str(files("headwater.listeners.capture"))).parent.rglob("java/*.java"), key=lambda each: each.name
)


@pytest.mark.parametrize("source", SOURCES, ids=lambda each: each.name)
def test_no_private_method_is_synchronized(source: Path) -> None:
    """Janino compiles a private method to a static one, and forgets `synchronized` on the way: leave out `private`."""
    text = source.read_text(encoding="utf-8")
    assert re.findall(r"private [\w ]*\bsynchronized\b.*", text) == []


def blocks_that_catch_all(text: str) -> list[str]:
    """What stands in the blocks of `catch (Throwable ...)`, also in one within another: each ends where it is indented
    as where it began."""
    found = re.findall(r"^(?=( *)\} catch \(Throwable \w+\) \{\n((?:.*\n)*?)\1\})", text, re.MULTILINE)
    return [block for _, block in found]


@pytest.mark.parametrize("source", SOURCES, ids=lambda each: each.name)
def test_whatever_is_caught_is_reported_or_it_says_why_not(source: Path) -> None:
    text = source.read_text(encoding="utf-8")
    blocks = blocks_that_catch_all(text)
    assert len(blocks) == text.count("catch (Throwable")
    assert [block for block in blocks if not re.search(r"CaughtErrors\.\w+\(|throw |// ", block)] == []


def test_each_place_that_reports_what_it_caught_has_a_name_of_its_own() -> None:
    places: list[str] = []
    for source in SOURCES:
        for block in re.findall(r"catch \([^{]*\{[^}]*\}", source.read_text(encoding="utf-8")):
            named = set(re.findall(r'CaughtErrors\.\w+\("([^"]*)"', block))
            assert len(named) <= 1
            assert all(name.startswith(f"{source.name.removesuffix('.java')}.") for name in named)
            places += named
    assert len(places) > 40
    assert len(places) == len(set(places))
