"""What is read from each format's own log. The logs are written by hand, as the formats' specifications have them."""

from __future__ import annotations

import gzip
import io
import json
import os
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import pyarrow as pa
import pytest
from pyarrow import parquet

from headwater.consumers.reconcile import delta, hudi, iceberg, paimon
from headwater.consumers.reconcile.comparison import reconciled_event
from headwater.consumers.reconcile.files import LocalLogFiles, open_files
from headwater.consumers.reconcile.model import LogCommit, TableLog, TableLogError
from headwater.consumers.reconcile.table_logs import location_in, read_table_log
from headwater.events import DatasetId
from headwater.events.jobs import CommitKind, OverwriteScope, RangeStart, ReadMode
from headwater.listeners.capture.formats.delta import commits as delta_kinds
from headwater.listeners.capture.formats.delta.commits import DeltaCommit

TABLE = "9c12d441-03fe-4693-9a96-a0705ddf6901"
NOON = 1_772_366_400_000


def write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def by_number(log: TableLog | None) -> dict[int, LogCommit]:
    assert log is not None
    return {each.snapshot: each for each in log.commits}


def snapshot(number: int, parent: int | None, operation: str = "append") -> dict[str, Any]:
    summary = {"operation": operation, "added-records": "3"}
    parents = {} if parent is None else {"parent-snapshot-id": parent}
    return {"snapshot-id": number, "timestamp-ms": NOON + number, "summary": summary, "schema-id": 0, **parents}


def metadata(*snapshots: dict[str, Any], main: int, **more: Any) -> dict[str, Any]:
    refs = {"main": {"snapshot-id": main, "type": "branch"}, **more.pop("refs", {})}
    return {"table-uuid": TABLE, "snapshots": snapshots, "current-snapshot-id": main, "refs": refs, **more}


class TestIceberg:
    def test_the_newest_metadata_of_a_table_kept_by_path(self, tmp_path: Path) -> None:
        """v10 is newer than v9, and a tag is no branch."""
        write(tmp_path / "metadata/v9.metadata.json", metadata(snapshot(1, None), main=1))
        tag = {"t": {"snapshot-id": 1, "type": "tag"}}
        newest = metadata(snapshot(1, None), snapshot(2, 1, "overwrite"), main=2, refs=tag)
        write(tmp_path / "metadata/v10.metadata.json", newest)
        log = iceberg.read_log(LocalLogFiles(tmp_path))
        assert log is not None
        assert log.generation == UUID(TABLE)
        assert by_number(log) == {
            1: LogCommit(1, (NOON + 1) * 1000, CommitKind.APPEND, OverwriteScope.NOTHING, None, 0, (None,), 3),
            2: LogCommit(2, (NOON + 2) * 1000, CommitKind.OVERWRITE, OverwriteScope.UNKNOWN, 1, 0, (None,), 3),
        }

    @pytest.mark.parametrize("name", ["v2.gz.metadata.json", "v2.metadata.json.gz"])
    def test_compressed_metadata(self, tmp_path: Path, name: str) -> None:
        """Iceberg writes the first name, and reads both."""
        write(tmp_path / "metadata/v1.metadata.json", metadata(snapshot(1, None), main=1))
        content = json.dumps(metadata(snapshot(1, None), snapshot(2, 1), main=2)).encode()
        (tmp_path / "metadata" / name).write_bytes(gzip.compress(content))
        assert [*by_number(iceberg.read_log(LocalLogFiles(tmp_path)))] == [1, 2]
        (tmp_path / "metadata" / name).write_bytes(gzip.compress(content)[:-20])
        with pytest.raises(TableLogError, match="may be damaged"):
            iceberg.read_log(LocalLogFiles(tmp_path))

    def test_branches_what_is_held_back_and_what_was_rolled_back(self, tmp_path: Path) -> None:
        snapshots = [snapshot(1, None), snapshot(2, 1), snapshot(3, 1), snapshot(4, 1), snapshot(5, 1)]
        refs = {"br": {"snapshot-id": 3, "type": "branch"}}
        history = [{"snapshot-id": number, "timestamp-ms": NOON} for number in (1, 5, 2)]
        write(
            tmp_path / "metadata/v1.metadata.json",
            metadata(*snapshots, main=2, refs=refs, **{"snapshot-log": history}),
        )
        found = {number: each.branches for number, each in by_number(iceberg.read_log(LocalLogFiles(tmp_path))).items()}
        assert found == {1: (None, "br"), 2: (None,), 3: ("br",), 4: (), 5: (None,)}

    @pytest.mark.parametrize(
        ("operation", "replaced"), [("append", OverwriteScope.NOTHING), ("overwrite", OverwriteScope.PART)]
    )
    def test_a_commit_that_was_picked_is_made_from_its_source(
        self, tmp_path: Path, operation: str, replaced: OverwriteScope
    ) -> None:
        """It finds a pick that is told as any other commit, whose sources aren't known. A property of the user's may
        have the same name."""
        picked, named = snapshot(4, 2, operation), snapshot(5, 4)
        picked["summary"]["source-snapshot-id"], named["summary"]["source-snapshot-id"] = "3", "99"
        write(
            tmp_path / "metadata/v1.metadata.json",
            metadata(snapshot(1, None), snapshot(2, 1), snapshot(3, 1), picked, named, main=5),
        )
        log = iceberg.read_log(LocalLogFiles(tmp_path))
        assert log is not None
        found = by_number(log)
        place = DatasetId(namespace="file://vm", name="/t")
        event = reconciled_event(place, log, found[4])
        [read], [made] = event.inputs, event.outputs
        assert (made.commit_kind, made.replaced, made.made_from, made.parent) == (
            CommitKind.CHERRY_PICK,
            replaced,
            (0,),
            2,
        )
        assert (read.dataset, read.generation, read.snapshot) == (place, UUID(TABLE), 3)
        assert (read.mode, read.since, read.main, read.branch) == (
            ReadMode.CHANGES,
            RangeStart(snapshot=1),
            False,
            None,
        )
        other = reconciled_event(place, log, found[5])
        assert (other.inputs, other.outputs[0].commit_kind, other.outputs[0].made_from) == ((), CommitKind.APPEND, None)

    def test_what_only_the_newest_file_has_may_be_of_a_commit_that_failed(self, tmp_path: Path) -> None:
        """A catalog alone knows. What its predecessor has was current, and with the catalog's word all of it is."""
        names = [f"0000{number}-{UUID(int=number)}.metadata.json" for number in range(3)]
        write(tmp_path / "metadata" / names[0], metadata(main=-1))
        write(tmp_path / "metadata" / names[1], metadata(snapshot(1, None), main=1))
        log = {"metadata-log": [{"metadata-file": f"file:/t/metadata/{name}"} for name in names[:2]]}
        write(tmp_path / "metadata" / names[2], metadata(snapshot(1, None), snapshot(2, 1), main=2, **log))
        files = LocalLogFiles(tmp_path)
        assert {n: each.is_confirmed for n, each in by_number(iceberg.read_log(files)).items()} == {1: True, 2: False}
        asked = by_number(iceberg.read_log(files, f"metadata/{names[2]}"))
        assert all(each.is_confirmed for each in asked.values())


def delta_version(number: int, operation: str, *more: dict[str, Any], **info: Any) -> str:
    commit = {"commitInfo": {"timestamp": NOON + number, "operation": operation, **info}}
    return "\n".join(json.dumps(each) for each in (commit, *more)) + "\n"


class TestDelta:
    def test_versions_and_the_id_of_the_table(self, tmp_path: Path) -> None:
        log = tmp_path / "_delta_log"
        write(log / f"{0:020}.json", delta_version(0, "CREATE TABLE", {"metaData": {"id": TABLE}}))
        write(
            log / f"{1:020}.json",
            delta_version(1, "WRITE", operationParameters={"mode": "Append"}, operationMetrics={"numOutputRows": "7"}),
        )
        write(log / f"{2:020}.json", delta_version(2, "OPTIMIZE"))
        write(log / f"{2:020}.crc", "{}")
        write(log / f".{3:020}.json.tmp", "{")
        found = delta.read_log(LocalLogFiles(tmp_path))
        assert found is not None
        assert found.generation == UUID(TABLE)
        kinds = {number: (each.kind, each.parent, each.rows) for number, each in by_number(found).items()}
        K = CommitKind  # noqa: N806
        assert kinds == {0: (K.CREATE, None, None), 1: (K.APPEND, 0, 7), 2: (K.COMPACT, 1, None)}

    def test_the_id_is_in_a_checkpoint_where_old_versions_were_cleaned_up(self, tmp_path: Path) -> None:
        log = tmp_path / "_delta_log"
        write(log / f"{11:020}.json", delta_version(11, "WRITE"))
        rows = pa.table({"metaData": [None, {"id": TABLE, "name": None}], "txn": [None, None]})
        parquet.write_table(rows, log / f"{10:020}.checkpoint.parquet")
        found = delta.read_log(LocalLogFiles(tmp_path))
        assert found is not None
        assert (found.generation, [*by_number(found)]) == (UUID(TABLE), [11])

    def test_a_version_without_commit_information_has_the_time_of_its_file(self, tmp_path: Path) -> None:
        file = tmp_path / "_delta_log" / f"{0:020}.json"
        write(file, json.dumps({"metaData": {"id": "my table"}}) + "\n")
        os.utime(file, (1_000, 1_000))
        found = delta.read_log(LocalLogFiles(tmp_path))
        assert found is not None
        assert (found.generation, by_number(found)[0].time) == ("my table", 1_000_000_000)

    @pytest.mark.parametrize("version", [0, 3])
    @pytest.mark.parametrize(
        "word", ["WRITE", "STREAMING UPDATE", "SET TBLPROPERTIES", "CREATE OR REPLACE TABLE", "HUH"]
    )
    def test_commits_have_the_kinds_that_drivers_report(self, tmp_path: Path, word: str, version: int) -> None:
        """Two kinds of one commit would be told otherwise."""
        write(tmp_path / "_delta_log" / f"{version:020}.json", delta_version(version, word))
        reported = DeltaCommit(path="", version=version, read_version=version - 1, generation=None, operation=word)
        assert by_number(delta.read_log(LocalLogFiles(tmp_path)))[version].kind is delta_kinds.kind_of(reported)

    def test_only_another_id_makes_a_table_anew(self, tmp_path: Path) -> None:
        """`saveAsTable` that overwrites has the same word, but keeps the table, and perhaps some of its partitions."""
        log, word = tmp_path / "_delta_log", "CREATE OR REPLACE TABLE AS SELECT"
        ids = ["the first", TABLE, None, TABLE]
        for version, each in enumerate(ids):
            write(
                log / f"{version:020}.json",
                delta_version(version, word, *([{"metaData": {"id": each}}] if each else [])),
            )
        K, X = CommitKind, OverwriteScope  # noqa: N806
        made = {
            number: (each.kind, each.replaced)
            for number, each in by_number(delta.read_log(LocalLogFiles(tmp_path))).items()
        }
        kept = (K.OVERWRITE, X.UNKNOWN)
        assert made == {0: (K.CREATE, X.ALL), 1: (K.REPLACE, X.ALL), 2: kept, 3: kept}
        (log / f"{0:020}.json").unlink()
        assert by_number(delta.read_log(LocalLogFiles(tmp_path)))[1].kind is K.UNKNOWN, (
            "which id it had before isn't known"
        )


def paimon_snapshot(number: int, kind: str = "APPEND", user: str = "u", millis: int = 0) -> dict[str, Any]:
    return {
        "id": number,
        "schemaId": 0,
        "commitUser": user,
        "commitIdentifier": 9,
        "commitKind": kind,
        "timeMillis": NOON + number + millis,
        "deltaRecordCount": 2,
    }


class TestPaimon:
    def test_a_commit_that_stands_on_two_branches_is_one(self, tmp_path: Path) -> None:
        """A branch begins with a copy of the snapshot that it was made from; its own snapshots have the same numbers as
        main's."""
        write(tmp_path / "schema/schema-0", {"timeMillis": NOON})
        for number in (1, 2):
            write(tmp_path / f"snapshot/snapshot-{number}", paimon_snapshot(number))
        write(tmp_path / "snapshot/EARLIEST", "1")
        write(tmp_path / "branch/branch-b/snapshot/snapshot-1", paimon_snapshot(1))
        write(tmp_path / "branch/branch-b/snapshot/snapshot-2", paimon_snapshot(2, "OVERWRITE", user="v"))
        log = paimon.read_log(LocalLogFiles(tmp_path))
        assert log is not None
        assert log.generation == str(NOON)
        found = sorted((each.snapshot, each.branches[0] or "", each.branches, each.kind.value) for each in log.commits)
        assert [(number, branches, kind) for number, _, branches, kind in found] == [
            (1, (None, "b"), "APPEND"),
            (2, (None,), "APPEND"),
            (2, ("b",), "OVERWRITE"),
        ]


class TestHudi:
    def test_completed_commits_of_both_layouts(self, tmp_path: Path) -> None:
        write(tmp_path / ".hoodie/hoodie.properties", "hoodie.table.version=8\n")
        timeline = tmp_path / ".hoodie/timeline"
        schema = {"type": "record", "name": "C", "fields": [{"name": "operationType", "type": "string"}]}
        content = io.BytesIO()
        fastavro.writer(content, schema, [{"operationType": "UPSERT_PREPPED"}])
        timeline.mkdir()
        (timeline / "20260301120000002_20260301120000009.deltacommit").write_bytes(content.getvalue())
        write(timeline / "20260301120000001_20260301120000010.replacecommit", {"operationType": "CLUSTER"})
        write(tmp_path / ".hoodie/20200301120000001.commit", {"operationType": "INSERT"})
        for name in (
            "20260301120000003.commit.requested",
            "20260301120000003.inflight",
            "20260301120000004_20260301120000011.clean",
            "20260301120000005_20260301120000012.rollback",
        ):
            write(timeline / name, "{}")
        log = hudi.read_log(LocalLogFiles(tmp_path))
        assert log is not None
        found = [(each.snapshot, each.kind.value, each.parent) for each in log.commits]
        assert found == [
            (20200301120000001, "APPEND", None),
            (20260301120000002, "MERGE", 20200301120000001),
            (20260301120000001, "COMPACT", 20260301120000002),
        ]

    def archive(self, table: Path, version: int, *instants: tuple[str, str, str, dict[str, Any]]) -> None:
        """Write a version of the archive, which has these instants beside those that it had."""
        history = table / ".hoodie/timeline/history"
        history.mkdir(parents=True, exist_ok=True)
        columns = ("instantTime", "completionTime", "action", "metadata")
        rows = [(*each[:3], json.dumps(each[3]).encode()) for each in instants]
        name = f"{version}_0.parquet"
        parquet.write_table(
            pa.table(dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True))), history / name
        )
        files = [] if version == 1 else json.loads((history / f"manifest_{version - 1}").read_text())["files"]
        write(history / f"manifest_{version}", {"files": [*files, {"fileName": name, "fileLen": 1}]})
        write(history / "_version_", str(version))

    def archived(self, table: Path) -> None:
        write(table / ".hoodie/hoodie.properties", "hoodie.table.version=9\n")
        first = ("20260301120000001", "20260301120000005", "commit", {"operationType": "INSERT"})
        clean: tuple[str, str, str, dict[str, Any]] = ("20260301120000002", "20260301120000006", "clean", {})
        third = ("20260301120000003", "20260301120000007", "deltacommit", {"operationType": "UPSERT"})
        self.archive(table, 1, first, clean)
        self.archive(table, 2, third)
        # The third is still in the active timeline, as in the moment after it was archived.
        for at, digits in enumerate(("20260301120000003_20260301120000007", "20260301120000004_20260301120000008")):
            file = table / f".hoodie/timeline/{digits}.deltacommit"
            write(file, {"operationType": "UPSERT"})
            noon_in_tokyo = NOON / 1_000 - 9 * 3_600 + at
            os.utime(file, (noon_in_tokyo, noon_in_tokyo))

    def test_archived_commits_come_before_active_ones_and_none_twice(self, tmp_path: Path) -> None:
        self.archived(tmp_path)
        log = hudi.read_log(LocalLogFiles(tmp_path))
        assert log is not None
        one, three, four = (20260301120000000 + each for each in (1, 3, 4))
        found = [(each.snapshot, each.kind.value, each.parent) for each in log.commits]
        assert found == [(one, "APPEND", None), (three, "MERGE", one), (four, "MERGE", three)]

    def test_an_archived_commit_has_the_time_of_its_digits_in_the_zone_of_its_writer(self, tmp_path: Path) -> None:
        self.archived(tmp_path)
        at_five = NOON * 1_000 + 5_000
        assert by_number(hudi.read_log(LocalLogFiles(tmp_path)))[20260301120000001].time == at_five - 9 * 3_600_000_000
        write(tmp_path / ".hoodie/hoodie.properties", "hoodie.table.timeline.timezone=UTC\n")
        assert by_number(hudi.read_log(LocalLogFiles(tmp_path)))[20260301120000001].time == at_five

    def test_copied_files_say_nothing_of_a_zone(self, tmp_path: Path) -> None:
        self.archived(tmp_path)
        for file in (tmp_path / ".hoodie/timeline").glob("*.deltacommit"):
            os.utime(file, (NOON / 1_000 + 90_000, NOON / 1_000 + 90_000))
        assert by_number(hudi.read_log(LocalLogFiles(tmp_path)))[20260301120000001].time == NOON * 1_000 + 5_000

    def test_an_archive_that_is_compacted_meanwhile_is_read_again(self, tmp_path: Path) -> None:
        self.archived(tmp_path)
        history = tmp_path / ".hoodie/timeline/history"

        class Meanwhile(LocalLogFiles):
            def read(self, path: str) -> bytes | None:
                if path.endswith("1_0.parquet") and (history / "1_0.parquet").exists():
                    both = [parquet.read_table(history / f"{each}_0.parquet") for each in (1, 2)]
                    parquet.write_table(pa.concat_tables(both), history / "all.parquet")
                    write(history / "manifest_3", {"files": [{"fileName": "all.parquet", "fileLen": 1}]})
                    write(history / "_version_", "")
                    for each in (1, 2):
                        (history / f"{each}_0.parquet").unlink()
                return super().read(path)

        assert len(by_number(hudi.read_log(Meanwhile(tmp_path)))) == 3

    def test_an_archive_whose_files_are_lost_is_an_error(self, tmp_path: Path) -> None:
        self.archived(tmp_path)
        (tmp_path / ".hoodie/timeline/history/1_0.parquet").unlink()
        with pytest.raises(TableLogError, match="changed while it was read"):
            hudi.read_log(LocalLogFiles(tmp_path))


class TestWhereATableIs:
    def test_a_place_of_a_namespace_and_the_own_host(self, tmp_path: Path) -> None:
        lake = DatasetId(namespace="s3://lake", name="w/t")
        assert location_in(lake, {}) == "s3://lake/w/t"
        assert location_in(lake, {"s3://lake": "/mnt/lake/"}) == "/mnt/lake/w/t"
        assert location_in(DatasetId(namespace="file://localhost", name="/w/t"), {}) == "/w/t"
        with pytest.raises(TableLogError, match="is on elsewhere: run this there"):
            location_in(DatasetId(namespace="file://elsewhere", name="/w/t"), {})

    def test_no_log_and_a_damaged_one_are_errors_that_say_where(self, tmp_path: Path) -> None:
        dataset = DatasetId(namespace="file://localhost", name=str(tmp_path))
        with pytest.raises(TableLogError, match="there is no log in"):
            read_table_log(dataset, (), {}, {})
        write(tmp_path / "metadata/v1.metadata.json", "{")
        with pytest.raises(TableLogError, match=r"v1\.metadata\.json isn't JSON"):
            read_table_log(dataset, (), {}, {})
        write(tmp_path / "metadata/v1.metadata.json", {"snapshots": [{}]})
        with pytest.raises(TableLogError, match="isn't as its format has it"):
            read_table_log(dataset, (), {}, {})

    def test_files_of_an_object_store_are_read_as_those_of_a_disk(self, tmp_path: Path) -> None:
        """Arrow's own file system stands for one."""
        from pyarrow.fs import LocalFileSystem

        from headwater.consumers.reconcile.files import ArrowLogFiles

        write(tmp_path / "a/b", "x")
        write(tmp_path / "a/c/d", "x")
        for files in (ArrowLogFiles(LocalFileSystem(), str(tmp_path)), open_files(f"file:{tmp_path}")):
            assert [each.name for each in files.files_in("a")] == ["b"]
            assert files.files_in("a")[0].modified > 0
            assert (files.directories_in("a"), files.files_in("no"), files.read("no")) == (["c"], [], None)
            assert files.read("a/b") == b"x"
