"""What OpenLineage gets for an event of each kind: golden files to read, facts by hand, and the official schemas.

`python -m tests.golden.forwarders.test_openlineage` writes the golden files anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from openlineage.client.serde import Serde

from headwater.events import Event, JobName
from headwater.events.catalog import CreateTable, ModificationEffect, Truncate
from headwater.events.changes import RenameTable
from headwater.events.jobs import (
    CommitKind,
    Committed,
    Input,
    JobLineage,
    JobStatus,
    Output,
    OverwriteScope,
    ParentRun,
    ReadMode,
)
from headwater.events.kinds import KINDS
from headwater.events.names import DatasetId, TableName
from headwater.forwarders.api import NoLineage
from headwater.forwarders.openlineage.mapping import openlineage_events
from headwater.testing.examples import COMMITTED, EXAMPLES, PARENT, RUN, place
from headwater.testing.strategies import events
from tests.kit.effort import examples
from tests.kit.openlineage_spec import facets_of, problems_of

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent / "openlineage"
LINEAGE = {event.fingerprint: event for event in EXAMPLES if isinstance(event, JobLineage)}
ORDERS = "s3://acme-lake-prod", "warehouse/sales/orders"
DAILY = "s3://acme-lake-prod", "warehouse/sales/daily"
SAID = {
    *("CreateTable", "AlterTable", "DropTable", "CreateView", "AlterView", "DropView", "Truncate", "DatasetsUnified"),
    *("JobStarted", "JobLineage", "Committed", "StatementFailed", "JobStatusChanged", "Gap"),
}
"""The kinds that OpenLineage can say."""


class Known:
    def get(self, fingerprint: bytes) -> JobLineage | None:
        return LINEAGE.get(fingerprint)


def messages(event: Event) -> list[dict[str, Any]]:
    return [Serde.to_dict(message) for message in openlineage_events(event, Known())]


def cases() -> dict[str, Event]:
    found: dict[str, Event] = {}
    for event in EXAMPLES:
        count = sum(name.startswith(f"{event.kind}.") for name in found) + 1
        found[f"{event.kind}.{count}"] = event
    return found


CASES = cases()


def example(kind: str) -> Event:
    return CASES[f"{kind}.1"]


def text_of(event: Event) -> str:
    return json.dumps(messages(event), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("name", CASES)
def test_each_kind_gives_what_its_golden_file_shows(name: str) -> None:
    file = HERE / f"{name}.json"
    if CASES[name].kind in SAID:
        assert text_of(CASES[name]) == file.read_text("utf-8")
    else:
        assert messages(CASES[name]) == []
        assert not file.exists()


@pytest.mark.parametrize("name", CASES)
def test_each_message_is_valid(name: str) -> None:
    assert [fault for message in messages(CASES[name]) for fault in problems_of(message)] == []


@pytest.mark.parametrize("name", CASES)
def test_facets_of_our_own_are_custom_ones_for_openlineages_validator(name: str) -> None:
    """It refuses a facet that no schema of its own knows, unless the facet's schema is named as one of these kinds."""
    kinds = ("Run", "Job", "Dataset", "InputDataset", "OutputDataset")
    own = [
        facet["_schemaURL"]
        for message in messages(CASES[name])
        for key, facet in facets_of(message)
        if key.startswith("headwater_")
    ]
    assert [url for url in own if not any(f"defs/{kind}Facet" in url for kind in kinds)] == []


def test_every_kind_has_a_case() -> None:
    assert {event.kind for event in CASES.values()} == KINDS.keys()


@pytest.mark.parametrize("damage", ["schemaURL", "eventTime", "job"])
def test_the_judge_sees_what_is_missing(damage: str) -> None:
    [message] = messages(example("JobStarted"))
    del message[damage]
    if damage == "schemaURL":
        message["schemaURL"] = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/JobEvent"
    assert problems_of(message)


def committed(**update: Any) -> Committed:
    [event] = [event for event in EXAMPLES if isinstance(event, Committed) and event.barrier == COMMITTED.barrier]
    return event.model_copy(update=update)


def named(datasets: Iterable[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(dataset["namespace"], dataset["name"]): dataset for dataset in datasets}


def test_a_batch_commit_is_a_run_of_its_own_under_the_application() -> None:
    start, complete = messages(committed())
    assert [start["eventType"], complete["eventType"]] == ["START", "COMPLETE"]
    assert start["run"]["runId"] == complete["run"]["runId"] != str(RUN)
    assert start["job"]["name"] == complete["job"]["name"] == "orders_etl.lake.sales.daily"
    parent = complete["run"]["facets"]["parent"]
    assert (parent["run"]["runId"], parent["job"]["name"]) == (str(RUN), "orders_etl")
    assert complete["run"]["facets"]["headwater_statement"]["barrier"] == str(COMMITTED.barrier)


@pytest.mark.parametrize("kind", [CommitKind.APPEND, CommitKind.CREATE])
def test_a_table_that_its_statement_created_was_not_overwritten(kind: CommitKind) -> None:
    output = committed().outputs[0]
    assert output.replaced is OverwriteScope.ALL
    event = committed(outputs=(output.model_copy(update={"commit_kind": kind}),))
    assert "lifecycleStateChange" not in messages(event)[-1]["outputs"][0]["facets"]


def test_a_failed_statement_is_a_part_of_the_application() -> None:
    assert failed_parent() == (str(RUN), "orders_etl")


def test_what_a_client_asked_for_and_spark_never_began_is_a_part_of_its_session() -> None:
    """The run of such an event is its own job's: it has no other."""
    session = JobName(name="server.anna")
    assert failed_parent(job=session, statement=None, operation="op-1") == (str(RUN), "server.anna")
    assert failed_parent(job=session, statement=7, operation="op-1") == (str(RUN), "orders_etl")


def failed_parent(**update: Any) -> tuple[str, str]:
    event = example("StatementFailed").model_copy(update={"run": RUN, "parent_job": PARENT, **update})
    start, fail = (message["run"]["facets"]["parent"] for message in messages(event))
    assert start == fail
    return fail["run"]["runId"], fail["job"]["name"]


def test_versions_are_those_that_were_read_and_made() -> None:
    complete = messages(committed())[-1]
    orders, daily = named(complete["inputs"])[ORDERS], named(complete["outputs"])[DAILY]
    assert orders["facets"]["version"]["datasetVersion"] == "8234827348273482734"
    assert daily["facets"]["version"]["datasetVersion"] == "5179299526185056830"
    assert daily["outputFacets"]["outputStatistics"] | {} == {
        **{key: daily["outputFacets"]["outputStatistics"][key] for key in ("_producer", "_schemaURL")},
        "rowCount": 31_337,
        "size": 4_194_304,
    }
    assert daily["facets"]["lifecycleStateChange"]["lifecycleStateChange"] == "OVERWRITE"


def test_columns_come_from_the_lineage_that_the_commit_names() -> None:
    daily = named(messages(committed())[-1]["outputs"])[DAILY]
    columns = daily["facets"]["columnLineage"]
    [amount] = columns["fields"]["total"]["inputFields"]
    assert (amount["namespace"], amount["name"], amount["field"]) == (*ORDERS, "amount")
    assert amount["transformations"] == [{"type": "DIRECT", "subtype": "AGGREGATION", "description": "sum(amount)"}]
    [joined] = columns["dataset"]
    assert (joined["field"], joined["transformations"]) == ("id", [{"type": "INDIRECT", "subtype": "JOIN"}])
    [symlink] = daily["facets"]["symlinks"]["identifiers"]
    assert symlink == {"namespace": "s3://acme-lake-prod/warehouse", "name": "sales.daily", "type": "TABLE"}


def test_a_lineage_that_never_came_is_not_made_up() -> None:
    *_, complete = (Serde.to_dict(message) for message in openlineage_events(committed(), NoLineage()))
    facets = named(complete["outputs"])[DAILY]["facets"]
    assert facets.keys() == {"version", "storage", "lifecycleStateChange", "headwater_table"}


def test_candidates_are_no_version() -> None:
    """The commit of the stream may have made snapshot 11 or 12."""
    [running] = messages(CASES["Committed.2"])
    assert running["eventType"] == "RUNNING"
    assert running["run"]["runId"] == str(RUN)
    daily = named(running["outputs"])[DAILY]
    assert "version" not in daily["facets"]
    assert daily["outputFacets"]["headwater_writes"]["writes"][0]["candidates"] == ["11", "12"]
    clicks = named(running["inputs"])["kafka://broker-1:9092", "clicks"]
    assert clicks["facets"]["version"]["datasetVersion"] == '{"0":140,"1":95}'
    assert clicks["inputFacets"]["headwater_reads"]["reads"][0]["since"] == {"version": '{"0":100,"1":80}'}
    [opaque] = running["run"]["facets"]["headwater_statement"]["unnamedInputs"]
    assert opaque == {"opaque": "an RDD whose source Spark doesn't show"}


def test_two_versions_of_one_input_are_not_told_as_one() -> None:
    reads = tuple(Input(**place("orders"), mode=ReadMode.STATE, snapshot=number) for number in (7, 8))
    outputs = (Output(**place("daily"), made_from=(0, 1)),)
    [orders] = messages(committed(inputs=reads, outputs=outputs))[-1]["inputs"]
    assert "version" not in orders["facets"]
    assert [read["snapshot"] for read in orders["inputFacets"]["headwater_reads"]["reads"]] == ["7", "8"]


def test_outputs_of_different_inputs_are_told_apart() -> None:
    """Without the facet a reader joins each output with all inputs."""
    inputs = Input(**place("orders"), snapshot=1), Input(**place("customers"), snapshot=2)
    outputs = Output(**place("daily"), made_from=(0,)), Output(**place("rates"), made_from=(1,))
    complete = messages(committed(inputs=inputs, outputs=outputs))[-1]
    made_from = {
        entry["name"]: [read["name"] for read in entry["inputs"]]
        for entry in complete["job"]["facets"]["lineage"]["entries"]
    }
    assert made_from == {
        "warehouse/sales/daily": ["warehouse/sales/orders"],
        "warehouse/sales/rates": ["warehouse/sales/customers"],
    }
    assert "lineage" not in messages(committed())[-1]["job"]["facets"]


@pytest.mark.parametrize(
    ("status", "state"),
    [("RUNNING", "RUNNING"), ("FINISHED", "COMPLETE"), ("ENDED", "COMPLETE"), ("FAILED", "FAIL"), ("KILLED", "ABORT")],
)
def test_a_run_ends_as_it_did(status: str, state: str) -> None:
    """COMPLETE says of an unknown exit that the run has concluded: the facet says that more isn't known."""
    event = example("JobStatusChanged").model_copy(update={"status": JobStatus(status)})
    [message] = messages(event)
    assert (message["eventType"], message["run"]["runId"], message["job"]["name"]) == (state, str(RUN), PARENT.name)
    assert message["run"]["facets"]["headwater_status"]["status"] == status


def test_a_status_that_a_newer_headwater_has_is_no_event() -> None:
    assert messages(example("JobStatusChanged").model_copy(update={"status": JobStatus.UNKNOWN})) == []


def test_a_failed_statement_is_a_run_that_failed_and_wrote_nothing() -> None:
    start, fail = messages(example("StatementFailed"))
    assert [start["eventType"], fail["eventType"]] == ["START", "FAIL"]
    error = fail["run"]["facets"]["errorMessage"]
    words = 'AnalysisException: [DIVIDE_BY_ZERO] by zero (config="spark.sql.ansi.enabled")'
    assert (error["message"], error["programmingLanguage"]) == (words, "JAVA")
    [daily] = fail["outputs"]
    assert "version" not in daily["facets"]


def test_only_a_uuid_is_a_parent_run() -> None:
    start = example("JobStarted")
    [foreign] = messages(start)
    assert "parent" not in foreign["run"]["facets"]
    assert foreign["run"]["facets"]["headwater_start"]["parent"]["run"] == "manual__2026-03-01"
    run = "01890a5d-ac96-7b4b-8cce-b302099a9999"
    [ours] = messages(start.model_copy(update={"parent": ParentRun(namespace="airflow", name="nightly", run=run)}))
    assert ours["run"]["facets"]["parent"]["run"]["runId"] == run


@pytest.mark.parametrize("kind", ["CreateTable", "DropTable", "AlterTable", "Truncate", "CreateView"])
def test_ddl_that_may_not_have_happened_is_not_told(kind: str) -> None:
    assert messages(example(kind).model_copy(update={"effect": ModificationEffect.UNKNOWN})) == []


def test_a_table_that_is_renamed_in_its_place_keeps_its_dataset() -> None:
    new = TableName(catalog="lake", database="sales", table="orders_2026")
    altered = example("AlterTable").model_copy(update={"changes": (RenameTable(table=new),)})
    [message] = messages(altered)
    dataset = message["dataset"]
    assert (dataset["namespace"], dataset["name"]) == ORDERS
    assert dataset["facets"]["symlinks"]["identifiers"][0]["name"] == "sales.orders_2026"
    change = dataset["facets"]["lifecycleStateChange"]
    assert change["lifecycleStateChange"] == "RENAME"
    assert change["previousIdentifier"] == {"namespace": "s3://acme-lake-prod/warehouse", "name": "sales.orders"}


def test_a_table_that_moves_names_its_old_place() -> None:
    new = TableName(catalog="lake", database="sales", table="sold")
    to = DatasetId(namespace=ORDERS[0], name="warehouse/sales/sold")
    altered = example("AlterTable").model_copy(update={"changes": (RenameTable(table=new, dataset=to),)})
    [message] = messages(altered)
    assert message["dataset"]["name"] == "warehouse/sales/sold"
    change = message["dataset"]["facets"]["lifecycleStateChange"]
    assert change["previousIdentifier"] == {"namespace": ORDERS[0], "name": ORDERS[1]}


def test_removing_a_partition_is_no_truncate() -> None:
    event = example("Truncate")
    assert isinstance(event, Truncate)
    [some], [everything] = messages(event), messages(event.model_copy(update={"partitions": ()}))
    assert "lifecycleStateChange" not in some["dataset"]["facets"]
    assert some["dataset"]["facets"]["headwater_table"]["truncatedPartitions"] == [{"day": "2026-03-01"}]
    assert everything["dataset"]["facets"]["lifecycleStateChange"]["lifecycleStateChange"] == "TRUNCATE"


def test_nested_columns_are_nested_fields() -> None:
    event = example("CreateTable")
    assert isinstance(event, CreateTable)
    [message] = messages(event)
    fields = {field["name"]: field for field in message["dataset"]["facets"]["schema"]["fields"]}
    assert (fields["amount"]["type"], fields["amount"]["ordinal_position"]) == ("decimal(10,2)", 2)
    assert fields["id"]["description"] == "the shop's own number"
    [element] = fields["lines"]["fields"]
    assert (element["name"], element["type"], element["fields"][0]["name"]) == ("_element", "struct", "sku")


def test_each_run_has_one_start_and_one_end() -> None:
    """A story of an application: it starts, commits twice, one statement fails, a gap, it ends."""
    time = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
    story = [
        example("JobStarted"),
        example("JobStatusChanged").model_copy(update={"status": JobStatus.RUNNING}),
        committed(),
        committed(barrier=COMMITTED.barrier + 1, time=time),
        example("StatementFailed"),
        example("Gap"),
        example("JobStatusChanged").model_copy(update={"status": JobStatus.FINISHED}),
    ]
    states: dict[str, list[str]] = {}
    jobs: dict[str, set[str]] = {}
    for message in (message for event in story for message in messages(event)):
        states.setdefault(message["run"]["runId"], []).append(message["eventType"])
        if message["eventType"] != "OTHER":
            jobs.setdefault(message["run"]["runId"], set()).add(message["job"]["name"])
    assert len(states) == 4
    for run, of_run in states.items():
        assert of_run[0] == "START"
        assert sum(state in {"COMPLETE", "FAIL", "ABORT"} for state in of_run) == 1
        assert len(jobs[run]) == 1


@settings(max_examples=examples(60))
@given(event=events())
def test_any_event_gives_valid_messages_and_the_same_ones_again(event: Event) -> None:
    first = messages(event)
    assert [fault for message in first for fault in problems_of(message)] == []
    assert json.dumps(messages(event)) == json.dumps(first)


def test_a_type_that_nobody_knows_is_left_as_it_is() -> None:
    event = example("CreateTable")
    assert isinstance(event, CreateTable)
    odd = event.table.columns[0].model_copy(update={"type": '{"type":"quantum","spin":1}'})
    [message] = messages(event.model_copy(update={"table": event.table.model_copy(update={"columns": (odd,)})}))
    assert message["dataset"]["facets"]["schema"]["fields"][0]["type"] == odd.type


def test_no_job_is_made_up() -> None:
    """An event that names no job says nothing to OpenLineage, in which everything is of a job or a dataset."""
    for event in (committed(), example("JobStarted"), example("JobLineage"), example("StatementFailed")):
        assert messages(event.model_copy(update={"job": None})) == []


def test_a_commit_under_another_name_or_incarnation_is_another_run() -> None:
    runs = {
        messages(event)[0]["run"]["runId"]
        for event in (
            committed(),
            committed(job=JobName(name="other")),
            committed(barrier=COMMITTED.barrier + 1),
            committed(producer=UUID(int=7)),
        )
    }
    assert len(runs) == 4
    assert messages(committed()) == messages(committed())


def write() -> None:
    for name, event in CASES.items():
        if messages(event):
            (HERE / f"{name}.json").write_text(text_of(event), "utf-8")


if __name__ == "__main__":
    write()
