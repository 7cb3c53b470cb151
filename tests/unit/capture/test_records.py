"""The format between the two halves of capture: real records of Spark 3.5 and 4.0, which `record.py` made, against its
page (docs/capture-records.md), its parser and the sources in Java that write it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import pytest

from headwater.listeners.capture.driver_listener import split_records
from headwater.listeners.capture.records import (
    VERSION,
    CaughtError,
    FailedRecord,
    FirstCaughtError,
    InvalidRecord,
    RddJobRecord,
    StatementRecord,
    parse_fields,
    parse_record,
)

PAGE: Final = Path(__file__).parents[3] / "docs/capture-records.md"
RECORDED: Final = sorted(Path(__file__).with_name("recorded").glob("*.jsonl"))
LINES: Final = [line for path in RECORDED for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
CAPTURE: Final = Path(str(files("headwater.listeners.capture")))
JAVA: Final = CAPTURE / "java"
WRITERS: Final = (
    "AnalysisFailure",
    "CatalogWriter",
    "CaughtErrors",
    "RddJobOutput",
    "RecordQueue",
    "ServerClients",
    "SqlExecutionListener",
    "StatementWriter",
    "StreamRun",
    "StreamWriter",
)
"""The sources in Java that write what all formats have in common."""
PARTS: Final = {
    "client": "client",
    "failure": "failure",
    "stream": "micro-batch",
    "catalogs": "catalog",
    "rdds": "RDD",
    "offsets": "range of offsets",
    "fact": "RDD job",
    "caught": "caught error",
    "firsts": "first error",
}
"""The keys under which a record has objects that are parsed too, and their sections on the page."""
PAYLOADS: Final = {"reads": "read", "nestedReads": "read", "nestedFacts": "nested fact", "hookFacts": "hook fact"}
"""The same of objects of which a format knows the rest."""


class Watched(dict[str, Any]):
    """An object of JSON that remembers which of its keys were asked for."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        super().__init__(fields)
        self.asked: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        self.asked.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.asked.add(key)
        return super().get(key, default)


@cache
def sections() -> Mapping[str, frozenset[str]]:
    """The keys that the page documents, by the section's title."""
    found: dict[str, frozenset[str]] = {}
    for section in re.split(r"^##+ ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        found[section.partition("\n")[0]] = frozenset(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
    return found


def documented(fields: Mapping[str, Any]) -> frozenset[str]:
    kind = fields["kind"]
    own = sections()["client record" if kind == "client" else kind]
    first = sections()["micro-batch"] if kind == "query" and "plan" in fields else frozenset[str]()
    return own | first | sections()["Every kind"]


def objects(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list) else [value]


def known_objects(record: Mapping[str, Any]) -> Iterator[tuple[Any, frozenset[str]]]:
    """A record and all in it that is parsed, each with the keys that the page has for it."""
    yield record, documented(record)
    holders = [record, record["stream"]] if "stream" in record else [record]
    for holder in holders:
        for key, title in PARTS.items():
            for each in objects(holder[key]) if key in holder else ():
                if key != "fact" or each["hook"] == "jobs":
                    yield each, sections()[title]
    for part in record.get("parts", ()):
        yield from known_objects(part)


@pytest.fixture(scope="module", params=range(len(LINES)), ids=lambda n: f"{n}-{json.loads(LINES[n])['kind']}")
def line(request: pytest.FixtureRequest) -> str:
    number: int = request.param
    return LINES[number]


def test_there_are_records_of_every_kind() -> None:
    assert {json.loads(each)["kind"] for each in LINES} == {
        "statement",
        "analysisFailure",
        "procedureCall",
        "outsideStatement",
        "client",
        "query",
        "unreadable",
        "dropped",
        "lost",
        "failed",
        "mark",
    }


def test_each_key_of_a_record_is_documented(line: str) -> None:
    record = json.loads(line)
    for each, keys in known_objects(record):
        assert each.keys() <= keys
    for key, title in PAYLOADS.items():
        for each in record.get(key, ()):
            assert each.keys() & sections()[title], f"{key}: what is the same for all formats"


def test_each_key_of_a_record_is_parsed(line: str) -> None:
    record = json.loads(line, object_hook=Watched)
    assert not isinstance(parse_fields(record), InvalidRecord)
    for each, _ in known_objects(record):
        assert each.keys() <= each.asked, "a key that nobody reads needn't be written"


def test_the_example_of_the_page_is_a_record() -> None:
    (example,) = re.findall(r"^```json\n(.*)\n```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert isinstance(parse_record(example), StatementRecord)
    assert json.loads(example).keys() <= documented(json.loads(example))


def test_each_documented_key_is_written_by_a_source() -> None:
    keys = set(re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert len(keys) > 80
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(CAPTURE.rglob("*.java")))
    assert {key for key in keys if not re.search(rf'"{key}\\?"', text)} == set()


@pytest.mark.parametrize("name", WRITERS)
def test_each_key_that_a_source_writes_is_documented(name: str) -> None:
    written = set(re.findall(r'(?:entry|key)\("(\w+)"', JAVA.joinpath(f"{name}.java").read_text(encoding="utf-8")))
    assert written
    assert written <= frozenset().union(*sections().values())


def test_both_ends_and_the_page_have_one_version() -> None:
    source = JAVA.joinpath("SqlExecutionListener.java").read_text(encoding="utf-8")
    assert re.findall(r"int recordVersion\(\) { return (\d+); }", source) == [str(VERSION)]
    assert f"The version is **{VERSION}**" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "can't be read"),
        ("[]", "AttributeError"),
        ('{"kind":"later"}', "KeyError: 'later'"),
        ('{"kind":"lost"}', "KeyError: 'count'"),
        ('{"kind":"statement","planDigest":"a"}', "KeyError: 'ended'"),
        ('{"id":1}', "KeyError: 'kind'"),
    ],
)
def test_what_cannot_be_read_says_why(text: str, why: str) -> None:
    found = parse_record(text)
    assert isinstance(found, InvalidRecord)
    assert why in found.why


def test_a_record_that_cannot_be_read_keeps_whose_it_is() -> None:
    found = parse_record('{"kind":"statement","id":7,"started":1,"ended":2,"tags":["t"],"confs":{"a":"b"}}')
    assert isinstance(found, InvalidRecord)
    assert (found.id, found.started, found.ended, found.tags, found.confs) == (7, 1, 2, ("t",), {"a": "b"})


def test_a_part_that_cannot_be_read_does_not_hide_the_others() -> None:
    part = {"kind": "statement", "ended": 2, "planDigest": "a"}
    found = parse_fields({**part, "parts": [part, {"kind": "statement"}, part]})
    assert isinstance(found, StatementRecord)
    assert [isinstance(each, InvalidRecord) for each in found.parts] == [False, True, False]


def test_unknown_keys_are_ignored() -> None:
    assert parse_record('{"kind":"mark","token":"t","later":1}') == parse_record('{"kind":"mark","token":"t"}')


def test_a_start_that_was_not_seen_is_none() -> None:
    assert parse_record('{"kind":"unreadable","started":-1,"why":"w"}').started is None


CAUGHT: Final = "IcebergHook.java:61: java.lang.IllegalStateException: no row 'hunter2' in [1, 2]"
FAILED: Final[Mapping[str, Any]] = {
    "kind": "failed",
    "count": 2,
    "caught": [{"why": CAUGHT, "statement": 7}],
    "firsts": [{"place": "IcebergHook.noticed", "why": CAUGHT, "frames": ["a.B.c(B.java:1)"]}],
}


def test_what_was_caught_comes_over_without_the_values_in_it() -> None:
    record = json.loads(json.dumps(FAILED), object_hook=Watched)
    found = parse_fields(record)
    assert isinstance(found, FailedRecord)
    masked = "IcebergHook.java:61: java.lang.IllegalStateException: no row '?' in [?]"
    assert found.caught == (CaughtError(masked, 7),)
    assert found.firsts == (FirstCaughtError("IcebergHook.noticed", masked, ("a.B.c(B.java:1)",)),)
    for each, keys in known_objects(record):
        assert each.keys() <= keys & each.asked


@pytest.mark.parametrize("method", ["'void a.B.c(int)'", "`void a.B.c(int)`"])
def test_the_name_of_a_method_that_is_missing_is_kept(method: str) -> None:
    """In single quotes it would be taken for data, so the JVM writes it in others."""
    why = f"DeltaHook.java:99: java.lang.NoSuchMethodError: {method}"
    found = parse_fields({"kind": "failed", "count": 1, "caught": [{"why": why}]})
    assert isinstance(found, FailedRecord)
    assert ("a.B.c" in found.caught[0].why) == method.startswith("`")


def test_a_job_of_an_rdd_has_the_tags_of_its_thread() -> None:
    fact = {"hook": "jobs", "site": "foreach at x.py:1", "tags": "a,b", "started": 1, "ended": 2, "saves": False}
    found = parse_fields({"kind": "outsideStatement", "fact": fact})
    assert isinstance(found, RddJobRecord)
    assert (found.tags, found.path, found.is_fresh) == (("a", "b"), None, False)


# Records of the SQL listener in the driver, as they come over to Python.


LINE_ENDS = "\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
"""What `str.splitlines` ends a line at, beside the line feed."""


@pytest.mark.parametrize("character", LINE_ENDS, ids=ascii)
def test_a_record_ends_at_a_line_feed_only(character: str) -> None:
    """Java's writer leaves some of these as they are: a comment with one in it lost its statement."""
    records = [f'{{"comment":"a{character}b"}}', '{"kind":"mark"}']
    assert split_records("".join(f"{each}\n" for each in records)) == records


def test_nothing_came_in_time() -> None:
    assert split_records(None) == []
