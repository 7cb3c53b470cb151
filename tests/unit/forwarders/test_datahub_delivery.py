"""Proposals over the wire: what comes twice is stored once, errors are told apart, the order is kept."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from datahub.emitter.mcp import MetadataChangeProposalWrapper
from datahub.ingestion.source.file import read_metadata_file
from datahub.metadata.schema_classes import ChangeTypeClass, MetadataChangeProposalClass

from headwater.config import read_config
from headwater.consumers.sources import BusRecord
from headwater.errors import TerminalError, TransientError
from headwater.events import Event
from headwater.events.catalog import CreateTable
from headwater.events.tables import Table
from headwater.forwarders.api import (
    BusEvent,
    CheckableForwarder,
    ClosableForwarder,
    ForwarderContext,
    PreviewableForwarder,
    RefusedEventsError,
)
from headwater.forwarders.datahub import DataHubForwarder
from headwater.forwarders.datahub.forwarder import datahub_proposals
from headwater.forwarders.datahub.options import DataHubConfig, DataHubNames
from headwater.forwarders.datahub.proposals import independent_batches
from headwater.forwarders.http_delivery import BusyTargetError
from headwater.lineage.bulk import BusPartition
from headwater.spi import CheckStatus
from tests.kit.forwarders.datahub_cases import CASES, ID, in_lake, stamped
from tests.kit.forwarders.datahub_server import Answer, DataHubServer, datahub_server

pytestmark = pytest.mark.slow

ORDERS = "urn:li:dataset:(urn:li:dataPlatform:iceberg,sales.orders,PROD)"
DAILY = "urn:li:dataset:(urn:li:dataPlatform:iceberg,sales.daily,PROD)"
JOB = "urn:li:dataJob:(urn:li:dataFlow:(spark,orders_etl,prod),orders_etl.lake.sales.daily)"
NAMES = DataHubNames()


@pytest.fixture
def server() -> Iterator[DataHubServer]:
    with datahub_server() as state:
        yield state


def forwarder(**options: str) -> DataHubForwarder:
    return DataHubForwarder(ForwarderContext("datahub", {key.replace("_", "."): text for key, text in options.items()}))


def batch(*events: Event) -> list[BusEvent]:
    partition = BusPartition("cluster", "topic")
    return [BusEvent(event, BusRecord(b"", partition, offset, None)) for offset, event in enumerate(events)]


def send(to: DataHubForwarder, *events: Event) -> None:
    asyncio.run(to.handle(batch(*events)))


STORY = [CASES[name] for name in (
    "database_created", "table_created", "lineage", "commit", "columns_and_properties_altered", "tag_created",
    "tag_dropped", "table_dropped", "table_made_again", "view_created", "application_started", "run_finished",
)]  # fmt: skip


def stored(server: DataHubServer) -> tuple[dict[Any, Any], dict[Any, Any]]:
    return dict(server.aspects), dict(server.entries)


def test_a_batch_that_comes_twice_changes_nothing(server: DataHubServer) -> None:
    there = forwarder(url=server.url)
    send(there, *STORY)
    once = stored(server)
    send(there, *STORY)
    assert stored(server) == once
    assert server.aspects[ORDERS, "status"] == {"removed": False}
    assert len(server.aspects[ORDERS, "schemaMetadata"]["fields"]) == 1


def test_a_batch_is_stored_as_its_events_one_by_one_are(server: DataHubServer) -> None:
    """Batches leave out and reorder: what is stored in the end is the same."""
    send(forwarder(url=server.url), *STORY)
    with datahub_server() as other:
        slow = forwarder(url=other.url)
        for event in STORY:
            send(slow, event)
        assert stored(other) == stored(server)
        assert len(other.requests) > len(server.requests)


def test_edges_that_others_wrote_stay(server: DataHubServer) -> None:
    theirs = {"destinationUrn": DAILY}
    server.aspects[JOB, "dataJobInputOutput"] = {"inputDatasetEdges": {DAILY: theirs}, "inputDatajobEdges": {"x": {}}}
    send(forwarder(url=server.url), CASES["lineage"])
    edges = server.aspects[JOB, "dataJobInputOutput"]
    assert edges["inputDatasetEdges"][DAILY] == theirs
    assert ORDERS in edges["inputDatasetEdges"]
    assert edges["inputDatajobEdges"] == {"x": {}}


def test_a_schema_that_is_there_is_not_overwritten_by_a_jobs(server: DataHubServer) -> None:
    server.aspects[ORDERS, "schemaMetadata"] = "of another source"
    send(forwarder(url=server.url), CASES["lineage"])
    assert server.aspects[ORDERS, "schemaMetadata"] == "of another source"
    assert server.aspects[DAILY, "schemaMetadata"]["schemaName"] == "sales.daily"


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(429, headers={"Retry-After": "7"}), BusyTargetError),
        (Answer(500), TransientError),
        (Answer(503, b"<html>busy</html>"), TransientError),
        (Answer(200, b"<html>please log in</html>"), TransientError),
        (Answer(200, b""), TransientError),
        (Answer(302, headers={"Location": "/login"}), TerminalError),
        (Answer(401), TerminalError),
        (Answer(403), TerminalError),
        (Answer(404), TerminalError),
    ],
    ids=lambda each: f"{each.status} {each.body[:5]!r}" if isinstance(each, Answer) else each.__name__,
)
def test_an_error_is_told_by_its_type_and_the_batch_can_come_again(
    server: DataHubServer, answer: Answer, error: type[Exception]
) -> None:
    server.answers.append(answer)
    there = forwarder(url=server.url)
    with pytest.raises(error) as caught:
        send(there, CASES["table_created"])
    assert not isinstance(caught.value, RefusedEventsError)
    assert len(server.requests) == 1, "the SDK must not retry by itself: who calls knows how long to wait"
    if answer.status == 429:
        assert isinstance(caught.value, BusyTargetError)
        assert caught.value.retry_after == 7
    send(there, CASES["table_created"])
    assert server.aspects[ORDERS, "status"] == {"removed": False}


def test_a_server_that_hangs_or_is_away_is_tried_again_later(server: DataHubServer) -> None:
    server.answers.append(Answer(hangs=True))
    with pytest.raises(TransientError):
        send(forwarder(url=server.url, request_timeout="1s"), CASES["table_created"])
    server.released.set()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(TransientError):
            send(forwarder(url=f"http://127.0.0.1:{taken.getsockname()[1]}"), CASES["table_created"])
    with pytest.raises(TerminalError):
        send(forwarder(url="nonsense"), CASES["table_created"])


def test_an_answer_that_is_lost_stores_nothing_twice(server: DataHubServer) -> None:
    there = forwarder(url=server.url)
    server.answers.append(Answer(500, stores=True))
    with pytest.raises(TransientError):
        send(there, CASES["commit"])
    send(there, CASES["commit"])
    assert len([key for key in server.entries if key[1] == "operation"]) == 1


def test_of_a_refused_batch_the_events_that_can_be_stored_are(server: DataHubServer) -> None:
    server.refused.add(ORDERS)
    with pytest.raises(RefusedEventsError) as caught:
        send(forwarder(url=server.url), CASES["commit"], CASES["table_created"], CASES["run_finished"])
    assert caught.value.reasons.keys() == {1}
    assert "invalid urn" in caught.value.reasons[1]
    assert {key[1] for key in server.entries} == {"operation", "dataProcessInstanceRunEvent"}


def test_the_event_loop_goes_on_while_the_server_hangs(server: DataHubServer) -> None:
    async def turns_while_it_hangs() -> int:
        server.answers.append(Answer(hangs=True))
        sending = asyncio.create_task(forwarder(url=server.url).handle(batch(CASES["table_created"])))
        await asyncio.to_thread(server.asked.wait)
        turns = 0
        while turns < 10 and not sending.done():
            await asyncio.sleep(0)
            turns += 1
        server.released.set()
        await sending
        return turns

    assert asyncio.run(turns_while_it_hangs()) == 10


def test_what_was_given_up_sends_no_further_request(server: DataHubServer) -> None:
    """Its thread can't be ended: it would send behind, or among, what is sent next."""

    async def give_up(there: DataHubForwarder) -> None:
        server.answers.append(Answer(hangs=True))
        sending = asyncio.create_task(there.handle(batch(CASES["table_created"], CASES["tag_created"])))
        await asyncio.to_thread(server.asked.wait)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        server.released.set()
        await there.handle(batch(CASES["table_dropped"]))

    asyncio.run(give_up(forwarder(url=server.url)))
    assert len(server.requests) == 2
    assert server.aspects[ORDERS, "status"] == {"removed": True}


def test_the_token_and_further_headers_are_sent(server: DataHubServer) -> None:
    server.token = "token-1"
    options = {"url": server.url, "token": "token-1", "header.X-Tenant": "a"}
    send(DataHubForwarder(ForwarderContext("datahub", options)), CASES["run_finished"])
    assert server.requests[-1][2]["X-Tenant"] == "a"
    assert "token-1" not in repr(read_config(DataHubConfig, options))
    with pytest.raises(TerminalError):
        send(forwarder(url=server.url, token="token-2"), CASES["run_finished"])


def results(there: DataHubForwarder) -> list[tuple[str, CheckStatus, str]]:
    async def collect() -> list[tuple[str, CheckStatus, str]]:
        return [(each.step, each.status, each.message) async for each in there.check()]

    return asyncio.run(collect())


def test_a_check_tells_version_and_user_and_writes_nothing(server: DataHubServer) -> None:
    service, user, rights = results(forwarder(url=server.url))
    assert service == ("service", CheckStatus.OK, f"{server.url} answers: DataHub v1.4.0")
    assert user == ("user", CheckStatus.OK, "it knows us as headwater")
    assert rights[:2] == ("rights", CheckStatus.WARNING)
    assert server.proposals == []
    server.token = "other"
    assert [each[1] for each in results(forwarder(url=server.url))] == [CheckStatus.ERROR]
    server.answers.append(Answer(200, b'{"noCode": "false"}'))
    assert "frontend service" in results(forwarder(url=server.url))[0][2]


def test_a_forwarder_can_be_checked_closed_and_asked_for_a_preview(tmp_path: Path) -> None:
    there = forwarder(directory=str(tmp_path))
    assert isinstance(there, CheckableForwarder)
    assert isinstance(there, ClosableForwarder)
    assert isinstance(there, PreviewableForwarder)
    first, *_ = there.preview(CASES["table_dropped"])
    assert first == f'UPSERT status of {ORDERS}\n{{\n "removed": true\n}}'
    assert list(tmp_path.iterdir()) == []
    asyncio.run(there.close())


def read_back(directory: Path) -> list[MetadataChangeProposalWrapper | MetadataChangeProposalClass]:
    found: list[MetadataChangeProposalWrapper | MetadataChangeProposalClass] = []
    for path in sorted(directory.iterdir()):
        for each in read_metadata_file(path):
            assert isinstance(each, (MetadataChangeProposalWrapper, MetadataChangeProposalClass))
            found.append(each)
    return found


def test_files_are_read_back_by_the_sdk_as_what_was_proposed(tmp_path: Path) -> None:
    there = forwarder(directory=str(tmp_path / "new"))
    send(there, *STORY[:4])
    send(there, *STORY[4:])
    send(there, *STORY[4:])
    sent = [each for event in STORY for each in datahub_proposals(event, NAMES)]
    assert [meant(each) for each in read_back(tmp_path / "new")] == [meant(each) for each in sent]
    assert all(path.suffix == ".json" for path in (tmp_path / "new").iterdir())
    assert [each[1] for each in results(there)] == [CheckStatus.OK]


def meant(proposal: MetadataChangeProposalWrapper | MetadataChangeProposalClass) -> Any:
    told = proposal.to_obj()
    return told["entityUrn"], told["aspectName"], told["changeType"], json.loads(told["aspect"]["value"])


def test_a_directory_that_cannot_be_written_to_is_a_terminal_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    there = forwarder(directory=str(tmp_path / "file"))
    with pytest.raises(TransientError):
        send(there, CASES["table_created"])
    assert [each[1] for each in results(there)] == [CheckStatus.ERROR]


def kinds(batches: Sequence[Sequence[Any]]) -> list[list[tuple[str, str]]]:
    return [[(str(each.changeType), str(each.aspectName)) for each in one] for one in batches]


def test_a_patchingof_what_is_in_a_batch_begins_the_next() -> None:
    created = stamped(CreateTable(**in_lake("orders"), table=Table(columns=(ID,)), generation=UUID(int=1)))
    proposals = [
        each
        for event in (created, CASES["tag_created"], created, CASES["lineage"])
        for each in datahub_proposals(event, NAMES)
        if each.aspectName in {"datasetProperties", "schemaMetadata"} and each.entityUrn == ORDERS
    ]
    upsert, patching, create = ChangeTypeClass.UPSERT, ChangeTypeClass.PATCH, ChangeTypeClass.CREATE
    assert [str(each.changeType) for each in proposals] == [upsert, upsert, patching, upsert, upsert, create]
    assert kinds(list(independent_batches(proposals, 200))) == [
        [(upsert, "schemaMetadata"), (upsert, "datasetProperties")],
        [(upsert, "schemaMetadata"), (upsert, "datasetProperties")],
    ]
    assert [len(each) for each in independent_batches(proposals, 1)] == [1] * 6


def test_patches_of_one_thing_join_and_the_last_word_holds() -> None:
    proposals = [
        each
        for case in ("tag_created", "table_renamed", "tag_dropped")
        for each in datahub_proposals(CASES[case], NAMES)
        if each.aspectName == "datasetProperties" and each.entityUrn == ORDERS
    ]
    ((joined,),) = independent_batches(proposals, 200)
    assert isinstance(joined, MetadataChangeProposalClass)
    assert joined.validate()
    assert meant(joined)[3] == [{"op": "remove", "path": "/customProperties/headwater.tag.eod", "value": {}}]
    owners = [
        each
        for case in ("table_created", "table_of_hive", "table_created")
        for each in datahub_proposals(CASES[case], NAMES)
        if each.aspectName == "ownership"
    ]
    ((owner,),) = independent_batches(owners, 200)
    assert [each["op"] for each in meant(owner)[3]["patch"]] == ["add"]


def test_the_sdk_reports_its_use_to_nobody(tmp_path: Path) -> None:
    """It would, from any process that imports it, unless it is told before."""
    told = {"CI", "DATAHUB_TELEMETRY_ENABLED"} | {each for each in os.environ if each.endswith(("_CI", "_BUILD_ID"))}
    environment = {key: value for key, value in os.environ.items() if key not in told}
    imports = "import headwater.forwarders.datahub\nfrom datahub.telemetry import telemetry as t"
    command = [sys.executable, "-c", f"{imports}\nprint(t.ENV_ENABLED, t.telemetry_instance.enabled)"]
    done = subprocess.run(
        command, env=environment | {"HOME": str(tmp_path)}, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["False", "False"]
