"""A wrong key or value is one clear error that names the nearest right one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from typing import Annotated, Literal, Optional

import pytest
from pydantic import Field

from headwater.config import Config, read_config, read_usable_config, unknown
from headwater.errors import ConfigurationError


class Spool(Config):
    dir: str
    max_bytes: int = Field(default=1 << 30, ge=0)
    fsync: Literal["none", "interval", "always"] = "interval"
    producer: Mapping[str, str] = Field(default_factory=dict)


PREFIX = "spark.headwater.spool."


def read(**values: str) -> Spool:
    return read_config(Spool, {PREFIX + key.replace("_", "."): value for key, value in values.items()}, prefix=PREFIX)


def test_texts_become_values() -> None:
    assert read(dir="/spool", max_bytes="1024") == Spool(dir="/spool", max_bytes=1024)


def test_a_section_takes_whatever_stands_below_it() -> None:
    assert read(dir="/s", producer_linger_ms="5", producer_acks="all").producer == {"linger.ms": "5", "acks": "all"}


def test_other_prefixes_are_none_of_its_business() -> None:
    assert read_config(Spool, {f"{PREFIX}dir": "/s", "spark.app.name": "x"}, prefix=PREFIX).dir == "/s"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            {"dir": "/s", "max_byte": "1"},
            r"there is no key spark\.headwater\.spool\.max\.byte: did you mean spark\.headwater\.spool\.max\.bytes\?",
        ),
        ({"dir": "/s", "zzz": "1"}, r"there is no key .*zzz"),
        (
            {"dir": "/s", "fsync": "sometimes"},
            r"spark\.headwater\.spool\.fsync: Input should be 'none', 'interval' or 'always'",
        ),
        (
            {"dir": "/s", "max_bytes": "-1"},
            r"spark\.headwater\.spool\.max\.bytes: Input should be greater than or equal to 0",
        ),
        ({"dir": "/s", "max_bytes": "much"}, r"spark\.headwater\.spool\.max\.bytes: Input should be a valid integer"),
        ({}, r"spark\.headwater\.spool\.dir: isn't there, and has to be"),
    ],
)
def test_what_is_wrong_is_reported_with_its_full_key(values: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        read(**values)


def test_all_faults_are_reported_at_once() -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(max_bytes="much", fsnyc="always")
    assert [word in str(caught.value) for word in ("max.bytes", "fsnyc", "spool.dir: isn't there")] == [True] * 3


def test_a_value_is_never_reported_because_it_may_be_a_secret() -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(dir="/s", max_bytes="geheim")
    assert "geheim" not in str(caught.value)


def test_a_configuration_does_not_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        read(dir="/s").dir = "/other"  # type: ignore[misc]


def test_nothing_near_lists_what_there_is() -> None:
    assert unknown("listener", "quux", ["log", "kafka"]) == "there is no listener quux: there is kafka, log"
    assert unknown("listener", "quux", []) == "there is no listener quux: there is none at all"


class Sections(Config):
    """Every way to say that a field is a section, or a list."""

    plain: dict[str, str] = Field(default_factory=dict)
    maybe: Mapping[str, str] | None = None
    noted: Annotated[Optional[dict[str, str]], Field(description="x")] = None  # noqa: UP045  # as others write it
    tuned: dict[str, str] = Field(default_factory=dict)
    tuned_more: dict[str, str] = Field(default_factory=dict)
    tuned_more_exactly: dict[str, str] = Field(default_factory=dict)
    tuned_limit: int = 0
    names: tuple[str, ...] = ()
    codes: list[int] | None = None
    kinds: frozenset[Literal["a", "b"]] = frozenset()


@pytest.mark.parametrize("section", ["plain", "maybe", "noted"])
def test_a_mapping_is_a_section_however_its_type_is_written(section: str) -> None:
    assert getattr(read_config(Sections, {f"{section}.a.b": "1"}), section) == {"a.b": "1"}


def test_the_longest_section_wins_and_a_key_beats_them_all() -> None:
    values = {"tuned.a": "1", "tuned.more.b": "2", "tuned.more.exactly.c": "3", "tuned.limit": "4"}
    made = read_config(Sections, values)
    assert (made.tuned, made.tuned_more, made.tuned_more_exactly) == ({"a": "1"}, {"b": "2"}, {"c": "3"})
    assert made.tuned_limit == 4


@pytest.mark.slow
def test_the_winner_does_not_depend_on_hashes() -> None:
    code = (
        "from headwater.config import Config, read_config\n"
        "class C(Config):\n"
        "    a: dict[str, str] = {}\n"
        "    a_b: dict[str, str] = {}\n"
        "    a_b_c: dict[str, str] = {}\n"
        "print(read_config(C, {'a.b.c.d': '1'}))\n"
    )
    fields = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": str(seed)}, check=True, capture_output=True, timeout=60
        ).stdout
        for seed in range(6)
    }
    assert fields == {b"a={} a_b={} a_b_c={'d': '1'}\n"}


@pytest.mark.parametrize("key", ["plain", "plain."])
def test_a_value_for_a_section_is_reported_as_that(key: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_config(Sections, {f"p.{key}": "geheim"}, prefix="p.")
    assert str(caught.value) == f"p.{key} is a section, not a key: write p.plain.<name>"


@pytest.mark.parametrize("text", ["a,b", " a , b ", "a,b,"])
def test_lists_are_written_with_commas(text: str) -> None:
    assert read_config(Sections, {"names": text, "kinds": text}).names == ("a", "b")
    assert read_config(Sections, {"kinds": text}).kinds == {"a", "b"}


def test_elements_of_lists_are_values_too() -> None:
    assert read_config(Sections, {"codes": "1, 2"}).codes == [1, 2]
    assert read_config(Sections, {"names": ""}).names == ()
    with pytest.raises(ConfigurationError, match=r"^p\.codes\.1: Input should be a valid integer[^;]*$") as caught:
        read_config(Sections, {"p.codes": "1,geheim"}, prefix="p.")
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize(("text", "value"), [("true", True), ("false", False), ("1", True), ("0", False)])
def test_booleans(text: str, value: bool) -> None:
    class Switch(Config):
        is_on: bool

    assert read_config(Switch, {"is.on": text}).is_on is value


def test_the_key_is_reported_as_the_user_wrote_it_where_its_prefix_was_cut_off() -> None:
    with pytest.raises(ConfigurationError, match=r"there is no key spark\.x\.dri: did you mean spark\.x\.dir\?"):
        read_config(Spool, {"dir": "/s", "dri": "/t"}, shown="spark.x.")


def test_a_wrong_key_is_reported_and_its_default_holds() -> None:
    """Where a job is to go on: of several each is reported, and what is right counts."""
    reported: list[str] = []
    given = {"dir": "/s", "max.byte": "1", "fsync": "sometimes", "producer.acks": "all"}
    assert read_usable_config(Spool, given, reported.append, shown=PREFIX) == Spool(dir="/s", producer={"acks": "all"})
    assert [each.split(";")[0].partition(": ")[0] for each in reported] == [
        f"there is no key {PREFIX}max.byte",
        f"{PREFIX}fsync",
    ]
    assert all(each.endswith("; what holds now is the default") for each in reported)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"fsync": "always", "max.byte": "1"}, "dir: isn't there, and has to be"),
        ({"dir": "/s", "dri": "/t"}, "did you mean .*spool.dir"),
        ({"dir": "/s", "producr.security.protocol": "SASL_SSL"}, "there is no key"),
    ],
)
def test_what_has_no_default_and_what_secures_a_connection_stay_errors(given: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        read_usable_config(Spool, given, lambda _: None, shown=PREFIX)
