"""A format of another distribution is found, asked in its place, and costs nobody else anything where it is broken."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
from fastavro import schemaless_reader

from headwater.cli.doctor import installation
from headwater.events import Committed, DatasetId, Format
from headwater.events.avro import Codec, current_schema
from headwater.events.identity import Environment
from headwater.events.jobs import Output
from headwater.events.redaction import Redactor
from headwater.listeners import capture
from headwater.listeners.capture.asking import missing_parts
from headwater.listeners.capture.batch.spark_writes import find_sink
from headwater.listeners.capture.batch.write_lineage import describe_relations
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats import installed, java_parts, plugins
from headwater.listeners.capture.formats.protocol import ReadVersion, WriteTarget
from headwater.listeners.capture.jvm import read_sources
from headwater.listeners.capture.plan.tree import Plan
from headwater.listeners.capture.statements import Statement, StatementFacts
from headwater.spi import CheckStatus
from headwater.testing.examples import EXAMPLES
from tests.kit.formats.plugins import on_path, page_code, write_acme

OURS = ["iceberg", "delta", "paimon", "hudi", "kafka", "jdbc", "files"]


def relation(**fields: Any) -> Plan:
    """A plan of one leaf."""
    leaf = {"c": "LogicalRelation", "in": [], "out": [0], "args": {"relation": fields}}
    attributes = {"types": ['"long"'], "attributes": [["id", 0, True]], "expressions": []}
    return Plan.parse({"root": 0, "nodes": [leaf], **attributes})


ACME = relation(relation="com.acme.spark.AcmeRelation", acme={"path": "s3://lake/t"})
OTHER = relation(relation="org.apache.spark.Other", csv={})


def context() -> CaptureContext:
    return CaptureContext(Environment(host="driver-1"), {}, Redactor(), installed())


def test_a_format_of_another_distribution_is_one_of_them(tmp_path: Path) -> None:
    """That of the page: its Java is compiled with ours, it is asked before files are, and answers as the page says."""
    write_acme(tmp_path)
    with on_path(tmp_path):
        assert [each.name for each in plugins()] == [*OURS[:-1], "acme", OURS[-1]]
        acme = plugins()[-2]
        assert (installed().broken, installed().of_provider("ACME")) == ((), acme)
        assert java_parts()[-1].probe == "com.acme.spark.AcmeRelation"
        assert read_sources()["AcmeExtractor.java"] == page_code("java").encode()
        source, reader = describe_relations(ACME.nodes[0], ACME, context())
        assert reader is acme.reader
        target = find_sink(ACME.nodes[0], ACME, context())
        assert isinstance(target, WriteTarget)
        assert source.source.dataset == target.sink.dataset == DatasetId(namespace="s3://lake", name="t")
        assert source.source.format == target.sink.format == Format("ACME")
        assert [column.name for column in source.source.columns] == ["id"]
        assert find_sink(OTHER.nodes[0], OTHER, context()) is None
        facts = StatementFacts(
            reads=({"format": "acme", "path": "s3://lake/t", "version": 7},),
            hook_facts=({"hook": "acme", "path": "s3://lake/t", "version": 8},),
        )
        statement = Statement(id=1, plan=ACME, ended=0, facts=facts)
        assert reader.versions_read(source, ACME, facts) == (ReadVersion(snapshot=7),)
        assert [output.snapshot for output in reader.write_result(target, statement).outputs] == [8]
        assert reader.write_result(target, Statement(id=1, plan=ACME, ended=0)).gap
        assert reader.versions_read(source, ACME, StatementFacts())[0].why
    assert [each.name for each in plugins()] == OURS


@pytest.mark.parametrize(
    ("python", "java", "why"),
    [
        ("raise RuntimeError('no licence')", {}, "can't be imported: RuntimeError: no licence"),
        ("class PLUGIN: pass", {}, "it is a type: let the entry point of headwater.formats name a FormatPlugin"),
        (None, {"StatementWriter.java": ""}, "StatementWriter.java is brought by headwater itself too"),
        (None, {"DeltaHook.java": ""}, "DeltaHook.java is brought by delta too: give the class another name"),
        (page_code("python").replace('("com.acme.",)', "()"), {}, "it has no packages"),
        (page_code("python").replace('name="acme"', 'name="amce"'), {}, "it calls itself amce"),
    ],
)
def test_a_broken_one_is_left_out_and_named(
    python: str | None, java: dict[str, str], why: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """No format of ours is lost with it, and a Gap is due where a statement has classes of its library alone."""
    write_acme(tmp_path, python, java)
    with on_path(tmp_path):
        assert [each.name for each in plugins()] == OURS
        (broken,) = installed().broken
        (finding,) = [each for each in installation._formats() if each.status is CheckStatus.ERROR]
        assert broken.name == "acme"
        assert all(why in text for text in (broken.why, caplog.text, finding.message))
        assert [*missing_parts(ACME, ["acme"])] == ["acme"]
        assert [*missing_parts(OTHER, ["acme"])] == []


def test_one_that_fails_costs_the_statements_that_are_its_own(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    failing = page_code("python").replace("path = _path_of(node)", "raise RuntimeError('no licence')")
    write_acme(tmp_path, failing)
    with on_path(tmp_path):
        for _ in range(2):
            assert describe_relations(OTHER.nodes[0], OTHER, context())[1] is None
            assert find_sink(OTHER.nodes[0], OTHER, context()) is None
        assert caplog.text.count("The format acme failed at what isn't its own: RuntimeError: no licence") == 1
        for ask in (describe_relations, find_sink):
            with pytest.raises(RuntimeError, match="no licence"):
                ask(ACME.nodes[0], ACME, context())


def test_a_format_that_nobody_lists_is_told_by_its_name() -> None:
    """A program that knows the schema only reads OTHER, as for any word that it doesn't know."""
    (event,) = [each for each in EXAMPLES if isinstance(each, Committed) and each.outputs[0].format == Format("ACME")]
    encoded = Codec().encode(event)
    assert Codec().decode(encoded) == event
    assert Committed.from_json(event.to_json()) == event
    assert '"format":"ACME"' in event.to_json()
    schema = current_schema(Committed)
    read = schemaless_reader(io.BytesIO(encoded[10:]), schema.parsed, schema.parsed)
    assert isinstance(read, dict)
    assert read["outputs"][0]["format"] == "OTHER"


@pytest.mark.parametrize("text", ["", "acme", "AC ME", "A" * 64, "ACME\n"])
def test_no_other_text_is_a_format(text: str) -> None:
    with pytest.raises(ValueError, match="is not a valid Format"):
        Format(text)
    with pytest.raises(ValueError, match="format"):
        Output.model_validate({"dataset": None, "format": text})


def test_the_core_names_no_format() -> None:
    """What stands there by name is what an author of another format can't bring."""
    home = Path(capture.__file__).parent
    sources = (each for ending in ("*.py", "*.java") for each in home.rglob(ending))
    core = [each for each in sources if not any(home / "formats" / name in each.parents for name in OURS)]
    names = re.compile(r"iceberg|paimon|hudi|hoodie|\bdelta\b", re.IGNORECASE)
    named = [each.name for each in core if names.search(each.read_text("utf-8"))]
    assert len(core) > 80
    assert named == []
