"""Events of other producers, as they are: times, old facets, JobEvents; and which dataset a name is."""

from __future__ import annotations

import json
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from headwater.conformance.collecting import read_events
from headwater.conformance.observations import ObservedDataset, ScenarioDatasets
from headwater.conformance.reported import QualifiedName, ReportedDataset, parse_time, read_event
from headwater.errors import ConfigurationError, TransientError

DATASETS = {
    "orders": ObservedDataset(place="file:/w/sales/orders", names=("lake.sales.orders", "sales.orders")),
    "files": ObservedDataset(place="s3://lake/in"),
    "paid": ObservedDataset(names=("spark_catalog.default.paid", "default.paid")),
}
IDENTITIES = ScenarioDatasets(DATASETS)


@pytest.mark.parametrize(
    ("namespace", "name", "role"),
    [
        ("file", "/w/sales/orders", "orders"),
        ("file", "/w/sales/orders/", "orders"),
        ("file://host-7", "/w/sales/orders", "orders"),
        ("file:/w", "sales.orders", "orders"),
        ("thrift://metastore:9083", "Sales.Orders", "orders"),
        ("file", "/w/sales/orders/day=1", "orders"),
        ("file", "/w/sales/orders2", None),
        ("file", "/w/sales", None),
        ("s3://lake", "in", "files"),
        ("s3a://lake", "/in/part-0.json", "files"),
        ("s3://other", "in", None),
        ("hive://m", "default.paid", "paid"),
        ("", "", None),
    ],
)
def test_a_dataset_is_known_by_its_place_or_its_name(namespace: str, name: str, role: str | None) -> None:
    assert IDENTITIES.role_of(ReportedDataset(QualifiedName(namespace, name))) == role


def test_a_place_counts_before_a_name() -> None:
    moved = ReportedDataset(QualifiedName("hive://m", "default.paid"), (QualifiedName("file", "/w/sales/orders"),))
    assert IDENTITIES.role_of(moved) == "orders"


def test_what_a_symlink_says_once_holds_where_only_the_name_is_said() -> None:
    event = read_event(
        {
            "eventTime": "2026-03-01T12:00:00Z",
            "dataset": {
                "namespace": "odd",
                "name": "42",
                "facets": {"symlinks": {"identifiers": [{"namespace": "file", "name": "/w/sales/orders"}]}},
            },
        }
    )
    assert event
    assert ScenarioDatasets(DATASETS, [event]).role_of_name(QualifiedName("odd", "42")) == "orders"
    assert IDENTITIES.role_of_name(QualifiedName("odd", "42")) is None


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-03-01T12:00:19Z", "2026-03-01T12:00:19+00:00"),
        ("2026-03-01T12:00:19.5", "2026-03-01T12:00:19.500000+00:00"),
        ("2026-03-01T12:00:19.123456789+0100", "2026-03-01T11:00:19.123456+00:00"),
        ("2026-03-01T12:00-05:00", "2026-03-01T17:00:00+00:00"),
    ],
)
def test_times_are_read_with_any_number_of_digits(text: str, time: str) -> None:
    found = parse_time(text)
    assert found
    assert found.isoformat() == time


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01T12:00:00Z", None, 17])
def test_what_is_no_time_is_none(text: object) -> None:
    assert parse_time(text) is None
    assert read_event({"eventTime": text, "run": {"runId": "x"}}) is None


def test_column_lineage_of_older_versions_is_direct_and_of_no_kind() -> None:
    field = {"namespace": "file", "name": "/w/a", "field": "x"}
    old = {"fields": {"y": {"inputFields": [field], "transformationType": "IDENTITY"}}, "dataset": [field]}
    event = read_event(
        {"eventTime": "2026-03-01T12:00:00Z", "job": {}, "outputs": [{"facets": {"columnLineage": old}, "name": "b"}]}
    )
    assert event
    claims = event.outputs[0].lineage
    assert [(each.target, each.is_direct, each.kind) for each in claims] == [("y", True, None), ("", False, None)]


EVENT = {"eventTime": "2026-03-01T12:00:00Z", "run": {"runId": "1"}, "eventType": "START"}


@pytest.mark.parametrize(
    "text", [json.dumps(EVENT), f"{json.dumps(EVENT)}\n\n", json.dumps([EVENT]), json.dumps(EVENT, indent=1)]
)
def test_files_have_lines_a_document_or_a_list(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text(text)
    (tmp_path / "b.json").write_text('{"no": "event"}')
    (tmp_path / "notes.txt").write_text("no events")
    events, others = read_events([str(tmp_path)])
    assert [each.state for each in events] == ["START"]
    assert others == 1


class Answers(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing is logged."""


def test_events_are_read_from_a_url(tmp_path: Path) -> None:
    (tmp_path / "events.ndjson").write_text(json.dumps(EVENT))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Answers, directory=str(tmp_path))) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        assert [each.state for each in read_events([f"{url}/events.ndjson"])[0]] == ["START"]
        with pytest.raises(TransientError, match="missing can't be read: HTTP Error 404"):
            read_events([f"{url}/missing"])
        server.shutdown()
        thread.join()
    with pytest.raises(TransientError, match=r"can't be read: .*refused"):
        read_events([url])


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="isn't there: name a file"):
        read_events([str(tmp_path / "missing")])
    with pytest.raises(ConfigurationError, match="there are no files"):
        read_events([str(tmp_path)])
    file = tmp_path / "a.json"
    file.write_text(f"{json.dumps(EVENT)}\nhello\n")
    with pytest.raises(ConfigurationError, match=r"line 2 of .*a\.json is no JSON"):
        read_events([str(file)])
