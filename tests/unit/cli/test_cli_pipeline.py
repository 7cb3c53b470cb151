"""`headwater pipeline run`: what is wrong is said before Spark starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headwater.cli import main, pipeline
from headwater.cli.exits import Exit

KAFKA = "--bus kafka://broker:9092/lineage"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("", "where are the events"),
        (KAFKA, "needs a checkpoint"),
        (f"{KAFKA} --checkpoint c --kafka-client group.id=x", "group.id can't be set"),
        (f"{KAFKA} --checkpoint c --buckets 65", "buckets are from 1 to 64"),
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
    flags = "--checkpoint c --trigger 1m --batch 7 --buckets 3 --group g --kafka-client security.protocol=SSL"
    store = ["--store", f"{tmp_path}/store.db"]
    assert main(["pipeline", "run", *store, *KAFKA.split(), *flags.split()]) == 0
    assert main(["pipeline", "run", *store, "--bus", f"log:{tmp_path}", "--available-now"]) == 0
    kafka, log = seen
    assert kafka.kafka == {"bootstrap.servers": "broker:9092", "security.protocol": "SSL"}
    assert (kafka.topic, kafka.interval, kafka.most_records, kafka.buckets, kafka.group) == ("lineage", 60.0, 7, 3, "g")
    assert (log.log, log.interval, log.checkpoint, log.kafka) == (tmp_path, None, None, {})
