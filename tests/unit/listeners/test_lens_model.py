"""What a lens can say, and how `headwater run` reads it from flags. No Spark here."""

from __future__ import annotations

import re
from typing import Any

import pytest

from headwater.cli.app import main
from headwater.cli.run import split
from headwater.events.identity.namespaces import Namespaces
from headwater.lens import Lens, LensError, session


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"name": " "}, "a name"),
        ({"allowed": "lake.a"}, r"allowed=\['lake.a'\]"),
        ({"pins": {"lake.a": ""}}, "lake.a can't be pinned"),
        ({"pins": {"lake.a": True}}, "lake.a can't be pinned"),
        ({"redirects": {"lake.a": "lake.a"}}, "redirected to itself"),
    ],
)
def test_a_lens_that_cant_be_is_refused(asked: dict[str, Any], words: str) -> None:
    """Fails if a contradiction is found only by a statement, or never."""
    with pytest.raises(LensError, match=words):
        Lens(**asked)


@pytest.mark.parametrize(
    ("asked", "may"),
    [({}, True), ({"redirects": {"a": "b"}}, False), ({"redirects": {"a": "b"}, "writes_elsewhere": True}, True)],
)
def test_only_a_lens_without_redirects_lets_writes_be(asked: dict[str, Any], may: bool) -> None:
    """Fails if a run to try something may write real tables unless it is told not to."""
    assert Lens(**asked).allows_writes_elsewhere is may


def test_flags_of_a_lens_stand_before_the_script() -> None:
    """Fails if a flag's value is taken for the script."""
    own = ["--pin", "lake.a@8", "--redirect", "lake.b=lake.c", "--allow", "lake.d", "--lens", "try"]
    assert split([*own, "job.py", "--pin", "x"]) == (own, ["job.py", "--pin", "x"])


@pytest.mark.parametrize("flag", [["--pin", "lake.a"], ["--redirect", "lake.a"]])
def test_a_flag_that_cant_be_read_says_how_it_is_written(flag: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Fails if the script is run without what the flag was to say."""
    with pytest.raises(SystemExit, match="2"):
        main(["run", *flag, "job.py"])
    assert "isn't" in capsys.readouterr().err


def test_a_servers_sessions_have_no_lens(capsys: pytest.CaptureFixture[str]) -> None:
    """Fails if a server is started whose sessions read past the lens."""
    with pytest.raises(SystemExit, match="2"):
        main(["run", "--connect", "--pin", "lake.a@8"])
    assert "for scripts" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("kafka://Broker-1.:9093/orders", "kafka://broker-1:9093/orders"),
        ("kafka://broker-1/orders", "kafka://broker-1:9092/orders"),
        ("kafka://events/orders", "kafka://events/orders"),
    ],
)
def test_a_topic_is_named_as_lineage_names_it(written: str, meant: str) -> None:
    """Fails if a pin in other words isn't found by a read."""
    assert session.normal_name(written, Namespaces.parse({"events": "broker-7:9092"})) == meant


@pytest.mark.parametrize("name", ["kafka://", "kafka://orders", "kafka:///orders", "kafka://a b/orders"])
def test_a_name_without_a_cluster_is_no_topic(name: str) -> None:
    with pytest.raises(LensError, match="names no topic"):
        session.normal_name(name, Namespaces())


def test_a_topics_version_is_offsets_or_ranges() -> None:
    assert session.normal_version("t", '{"0": 42, "1": [3, 7]}') == '{"0":42,"1":[3,7]}'
    for wrong in (7, "latest", "{}", '{"0": -1}', '{"a": 1}', '{"0": [3, 2]}', '{"0": [1]}', '{"0": true}', "[1]"):
        with pytest.raises(LensError, match="t can't be pinned to"):
            session.normal_version("t", wrong)


def test_expressions_find_the_addresses_of_a_logical_name() -> None:
    """Fails if a glob, an address without a port or a regular expression means other hosts than it does in lineage."""
    found = list(Namespaces.parse({"a": "one, two:9093, b?-*:9092", "c": "/k[0-9]+:9092/"}).expressions())

    def names(address: str) -> list[str]:
        return [name for expression, name in found if re.fullmatch(expression, address)]

    assert [names(each) for each in ("one:1", "two:9093", "b1-x:9092", "k12:9092")] == [["a"], ["a"], ["a"], ["c"]]
    assert [names(each) for each in ("one.x:1", "two:9092", "b1-x:9093", "kx:9092")] == [[], [], [], []]
