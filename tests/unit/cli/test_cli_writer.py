"""What `headwater writer run` is configured by: by flags, by the environment, by a file."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from headwater.cli import pipeline
from headwater.cli.app import main
from headwater.cli.exits import Exit
from headwater.events.redaction import REDACTED
from headwater.journal import LocalLog
from headwater.lineage.api import LineageMetaContext
from headwater.lineage.meta import MemoryLineageMeta

ENDS = ["--until-end", "--no-maintenance"]


def printed_rows(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, tuple[str, str]]:
    assert main(["--output", "json", "writer", "run", "--print-config", *arguments]) == 0
    rows = json.loads(capsys.readouterr().out)["configuration"]
    return {row["key"]: (row["value"], row["from"]) for row in rows}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    place = tmp_path / "write.toml"
    place.write_text(
        'bus = "kafka://a:1/t"\nbatch = 7\ngroup = "file"\nuntil-end = true\n'
        'store = "postgresql://me:hidden@db/lineage"\n'
        '[kafka]\n"sasl.password" = "hidden"\n"security.protocol" = "SASL_SSL"\n'
        '[catalog-store]\nlake = "jdbc:postgresql://db/lake?password=hidden"\n'
    )
    return place


@pytest.mark.slow
def test_a_flag_goes_before_a_variable_and_that_before_the_file(
    capsys: pytest.CaptureFixture[str], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWATER_BUS", "log:/variable")
    monkeypatch.setenv("HEADWATER_STORE", "/variable")
    found = printed_rows(capsys, "--config", str(file), "--batch=9", "--store", "/flag")
    assert found["batch"] == ("9", "--batch")
    assert found["store"] == ("/flag", "--store")
    assert found["bus"] == ("log:/variable", "HEADWATER_BUS")
    assert found["group"] == ("file", str(file))
    assert found["until-end"] == ("True", str(file))
    assert found["drain-seconds"] == ("30", "default")


@pytest.mark.slow
def test_where_a_broker_is_says_nothing_of_its_client(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`headwater dev up kafka` prints HEADWATER_KAFKA, for other terminals."""
    monkeypatch.setenv("HEADWATER_KAFKA", "127.0.0.1:9092")
    assert printed_rows(capsys, "--bus", "kafka://a:1/t")["kafka"] == ("", "default")


@pytest.mark.slow
def test_secrets_are_not_shown(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    found = printed_rows(capsys, "--config", str(file))
    assert "hidden" not in str(found)
    assert "security.protocol=SASL_SSL" in found["kafka"][0]
    assert found["catalog-store"][0] == f"lake={REDACTED}"


@pytest.mark.slow
def test_keys_with_dots_need_no_quotes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """In TOML they are tables in a table then."""
    place = tmp_path / "write.toml"
    place.write_text(
        '[kafka]\nsecurity.protocol = "SASL_SSL"\nssl.ca.location = "/ca.pem"\nssl.key.location = "/key"\n'
    )
    expected = "security.protocol=SASL_SSL, ssl.ca.location=/ca.pem, ssl.key.location=/key"
    assert printed_rows(capsys, "--config", str(place))["kafka"][0] == expected


@pytest.mark.slow
def test_several_are_lines_of_a_variable(
    capsys: pytest.CaptureFixture[str], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWATER_CATALOG_STORES", "sea=/tmp/sea.db\npond=/tmp/pond.db")
    found = printed_rows(capsys, "--config", str(file))
    assert found["catalog-store"] == ("sea=/tmp/sea.db, pond=/tmp/pond.db", "HEADWATER_CATALOG_STORES")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("bacht = 5", "did you mean 'batch'?"),
        ("batch = [", "isn't TOML"),
        ("batch = 2020-01-01", "batch: date can't be a value here"),
    ],
)
def test_what_is_wrong_in_the_file_is_reported(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, words: str
) -> None:
    place = tmp_path / "write.toml"
    place.write_text(text)
    assert main(["writer", "run", "--config", str(place)]) == 78
    assert words in capsys.readouterr().err


@pytest.mark.slow
def test_a_value_that_is_wrong_in_the_file_is_reported(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    place = tmp_path / "write.toml"
    place.write_text("batch = 0")
    with pytest.raises(SystemExit):
        main(["writer", "run", "--config", str(place)])
    assert "write 1 or more" in capsys.readouterr().err


@pytest.mark.slow
def test_a_variable_that_no_flag_has_is_reported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWATER_WRITER_KAKFA", "a=b")
    assert main(["writer", "run"]) == 78
    assert "did you mean 'HEADWATER_WRITER_KAFKA'?" in capsys.readouterr().err


@pytest.mark.slow
def test_a_variable_says_no_more_than_where_things_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what Kubernetes sets for services called headwater and headwater-writer says nothing."""
    for variable in ("BATCH", "GROUP", "PIPELINE", "UNTIL_END", "NO_UPKEEP", "PORT", "SERVICE_HOST", "WRITER_PORT"):
        monkeypatch.setenv(f"HEADWATER_{variable}", "tcp://10.0.0.1:80")
    assert {origin for _, origin in printed_rows(capsys, "--bus", "log:/x").values()} == {"--bus", "default"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--store", "sqlite:///x.db"], "where are the events?"),
        (["--bus", "log:/nowhere/at/all", "--store", "{tmp}/x.db"], "name the directory that drivers write to"),
        (["--bus", "log:{tmp}"], "which store?"),
        (["--config", "/no/such/file"], "can't be read"),
        (
            [
                "--bus",
                "log:{tmp}",
                "--store",
                "{tmp}/x.db",
                "--catalog-store",
                "a={tmp}/a.db",
                "--catalog-store",
                "a={tmp}/b.db",
            ],
            "has two stores",
        ),
        (
            [
                "--bus",
                "log:{tmp}",
                "--store",
                "/no/where.db",
                "--processes",
                "2",
                "--catalog-store",
                "a={tmp}/a.db",
            ],
            "leave --processes at 1 for --catalog-store",
        ),
        (
            ["--bus", "log:{tmp}", "--processes", "2", "--lineage-meta", "somebodys"],
            "leave --processes at 1 for --lineage-meta",
        ),
        (
            ["--bus", "log:{tmp}/log", "--store", "sqlite:///{tmp}/x.db", "--processes", "2"],
            "SQLite lets one process write at a time",
        ),
        (["--bus", "kafka://127.0.0.1:1", "--processes", "2"], "which store?"),
    ],
)
def test_what_is_missing_is_reported_by_its_own_exit_code(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], words: str
) -> None:
    LocalLog.open(tmp_path / "log").writer().close()
    assert main(["writer", "run", *[each.replace("{tmp}", str(tmp_path)) for each in arguments]]) == 78
    assert words in capsys.readouterr().err


@pytest.mark.slow
def test_what_happens_is_reported_line_by_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    before = logging.getLogger("headwater").level
    log = LocalLog.open(tmp_path / "log")
    with log.writer() as journal:
        journal.append(b"no event")
    arguments = ["--bus", f"log:{tmp_path}/log", "--store", f"{tmp_path}/store.db", "--log-level", "debug"]
    assert main(["writer", "run", *arguments, *ENDS, "--log-format", "json"]) == 0
    lines: list[dict[str, Any]] = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    (batch,) = [each for each in lines if each["message"] == "stored a batch"]
    assert (batch["events"], batch["dead_letters"], batch["level"]) == (1, 1, "debug")
    (letter,) = [each for each in lines if each["message"] == "a dead letter"]
    assert (letter["reason"], letter["position"], letter["level"]) == ("UNDECODABLE", 0, "warning")
    assert logging.getLogger("headwater").level == before


@pytest.mark.slow
@pytest.mark.slow
def test_a_store_of_somebody_elses_is_called(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headwater.events.avro import Codec
    from headwater.testing.examples import EXAMPLES

    monkeypatch.setattr(Somebodys, "made", [])
    with LocalLog.open(tmp_path / "log").writer() as journal:
        for event in EXAMPLES:
            journal.append(Codec().encode(event))
    arguments = ["--bus", f"log:{tmp_path}/log", "--lineage-meta", f"{__name__}:Somebodys", "--store-option", "a=b"]
    assert main(["writer", "run", *arguments, *ENDS]) == 0
    assert "aren't kept there" in capsys.readouterr().err
    (made,) = Somebodys.made
    assert made.options["a"] == "b"
    assert list(made.store.sink_table_lineages())
    assert main(["writer", "run", *arguments, *ENDS]) == 0
    assert not list(Somebodys.made[1].store.sink_table_lineages()), "the log keeps how far it was read"


class Somebodys:
    """A factory, and what it made."""

    made: ClassVar[list[Somebodys]] = []

    def __init__(self) -> None:
        self.store = MemoryLineageMeta()
        self.options: Mapping[str, str] = {}

    def identifier(self) -> str:
        return "somebodys"

    def create(self, context: LineageMetaContext) -> MemoryLineageMeta:
        self.options = context.options
        self.made.append(self)
        return self.store


# `headwater pipeline run`: what is wrong is said before Spark starts.


KAFKA = "--bus kafka://broker:9092/lineage"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("", "where are the events"),
        (f"{KAFKA} --kafka-client group.id=x", "group.id can't be set"),
        (f"{KAFKA} --buckets 65", "buckets are from 1 to 64"),
    ],
)
def test_what_is_wrong_is_said_with_what_to_do(
    arguments: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = ["--store", f"{tmp_path}/store.db"]
    assert main(["pipeline", "run", *store, *arguments.split()]) == Exit.CONFIGURATION
    assert words in capsys.readouterr().err


def test_flags_become_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def keep(options: Any, _: Any) -> dict[str, int]:
        seen.append(options)
        return {}

    monkeypatch.setattr(pipeline, "_run", keep)
    flags = "--trigger 1m --batch 7 --buckets 3 --group g --kafka-client security.protocol=SSL"
    store = ["--store", f"{tmp_path}/store.db"]
    assert main(["pipeline", "run", *store, *KAFKA.split(), *flags.split()]) == 0
    assert main(["pipeline", "run", *store, "--bus", f"log:{tmp_path}", "--available-now"]) == 0
    kafka, log = seen
    assert kafka.kafka == {"bootstrap.servers": "broker:9092", "security.protocol": "SSL"}
    assert (kafka.topic, kafka.interval, kafka.most_records, kafka.buckets, kafka.group) == ("lineage", 60.0, 7, 3, "g")
    assert (log.log, log.interval, log.kafka) == (tmp_path, None, {})
