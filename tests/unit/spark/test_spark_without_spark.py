"""What the Spark reader is where there is no Spark: importable, and clear about what is missing."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.consumers.spark.query_steps import MARK, with_mark
from headwater.consumers.spark.readable_columns import times_out_of_range, to_readable
from headwater.consumers.spark.schemas import known_schemas, reader_schema
from headwater.consumers.spark.session import AVRO_LIMITS, warn_once, warn_without_limits
from headwater.errors import ConfigurationError, TerminalError
from headwater.events.avro import WriterSchema, released
from headwater.events.avro.schema_cache import read_schema
from headwater.events.avro.upgrade import STEPS

WITHOUT_PYSPARK = """
import sys
sys.modules["pyspark"] = None
import headwater.consumers, headwater.consumers.spark as spark
try:
    spark.classify(None)
except spark.MissingSparkError as e:
    print(e)
"""


@pytest.mark.slow
def test_without_pyspark_it_says_what_to_install() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_PYSPARK], capture_output=True, text=True, check=True)
    assert "[spark]" in done.stdout


@pytest.mark.slow
def test_importing_it_loads_no_pyspark() -> None:
    code = "import sys, headwater.consumers.spark; print([m for m in sys.modules if m.startswith(('pyspark', 'py4j'))])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("schema", released(), ids=lambda s: f"{s.kind}.v{s.version}")
def test_every_released_schema_has_readable_columns(schema: WriterSchema) -> None:
    sql = to_readable(schema, "e", fixed={})
    assert "'producer', lower(concat(hex(substring(e.`producer`, 1, 4))" in sql
    assert times_out_of_range(schema, "e")[0].startswith("unix_micros(e.`time`) NOT BETWEEN")
    assert ".member" not in sql or "coalesce(" in sql


def test_the_mark_stands_behind_everything() -> None:
    schema = released()[0]
    assert [f["name"] for f in read_schema(with_mark(schema)).parsed["fields"]][-1] == MARK


def test_a_field_named_as_the_mark_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="the name of the mark"):
        with_mark(read_schema(with_mark(released()[0])))


def test_what_avro_alone_cant_upgrade_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark would give the old values under the new names."""
    old = released()[0]
    monkeypatch.setitem(STEPS, (old.kind, old.version), dict)
    newer = old.text.replace(f'"version": {old.version}', f'"version": {old.version + 1}')
    assert newer != old.text
    with pytest.raises(TerminalError, match="a step of headwater"):
        reader_schema(old.kind, known_schemas(), newer)


@pytest.mark.parametrize("version", [-1, -(2**60), 2**31, 10**50])
def test_absurd_versions_are_refused(version: int) -> None:
    text = released()[0].text.replace('"version": 1', f'"version": {version}')
    with pytest.raises(ConfigurationError, match="versions are from 0"):
        known_schemas([text])


@pytest.mark.parametrize(
    ("conf", "named"),
    [
        ({"spark.master": "local[2]"}, "spark.driver.extraJavaOptions"),
        ({"spark.master": "yarn", "spark.driver.extraJavaOptions": AVRO_LIMITS}, "spark.executor.extraJavaOptions"),
        ({"spark.master": "local[2]", "spark.driver.extraJavaOptions": f"-Xmx1g {AVRO_LIMITS}"}, None),
        ({"spark.master": "k8s://x", "spark.executor.extraJavaOptions": AVRO_LIMITS}, None),
    ],
)
def test_missing_limits_are_reported_once(
    conf: dict[str, str], named: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    warn_once.cache_clear()
    session: Any = SimpleNamespace(conf=conf)
    warn_without_limits(session)
    warn_without_limits(session)
    assert [message.split()[0] for message in caplog.messages] == ([named] if named else [])
