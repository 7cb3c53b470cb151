"""Forks of hand-made checkpoints: what they hold, and what is refused with which words.

What Spark makes of a fork is held by `tests/matrix/test_stream_forks.py`; here is what real queries seldom leave: names
instead of places, files of later batches in each corner, damage, and readers of one place at a time.
"""

from __future__ import annotations

import fcntl
import json
import os
import zipfile
from pathlib import Path
from typing import Any, Final

import pytest

from headwater.cli import main
from headwater.errors import ConfigurationError, HeadwaterError, TransientError
from headwater.versions.forks import ForkError, SourceMove, plan_fork, write_fork
from headwater.versions.forks.hadoop_files import checksums_of

ORDERS, MENDED = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
QUERY: Final = "33333333-3333-3333-3333-333333333333"
UUIDS: Final = [f"{n:08d}-aaaa-bbbb-cccc-dddddddddddd" for n in range(10)]


def delta_offset(table: str, version: int, index: int = -1, *, is_state: bool = False) -> str:
    fields = {"sourceVersion": 1, "reservoirId": table, "reservoirVersion": version, "index": index}
    return json.dumps({**fields, "isStartingVersion": is_state}, separators=(",", ":"))


KAFKA: Final = '{"orders":{"0":17,"1":4}}'
RATE: Final = "42"
ICEBERG: Final = '{"version":1,"snapshot_id":7,"position":2,"scan_all_files":false}'
PAIMON: Final = '{"snapshotId":3,"index":1,"scanSnapshot":false}'


def write(path: Path, text: str = "x") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def make_checkpoint(root: Path, *batches: list[str], version: str = "v1", committed: int | None = None) -> Path:
    """A checkpoint with these offsets in each batch, all committed but those from a number on."""
    write(root / "metadata", f'{{"id":"{QUERY}"}}')
    for number, offsets in enumerate(batches):
        write(root / "offsets" / str(number), "\n".join([version, '{"batchWatermarkMs":0}', *offsets]))
        if committed is None or number < committed:
            write(root / "commits" / str(number), 'v1\n{"nextBatchWatermarkMs":0}')
    return root


def make_table(root: Path, table: str, *versions: dict[str, Any]) -> Path:
    """A Delta table with what `commitInfo` says of each version."""
    for number, info in enumerate(versions):
        actions: list[dict[str, Any]] = [{"commitInfo": info}, *([{"metaData": {"id": table}}] if not number else [])]
        write(root / "_delta_log" / f"{number:020}.json", "\n".join(map(json.dumps, actions)))
    return root


def clone_of(version: int) -> dict[str, Any]:
    return {"operation": "CLONE", "operationParameters": {"source": "orders", "sourceVersion": str(version)}}


WRITE: Final = {"operation": "WRITE", "operationParameters": {}}


def make_fork(checkpoint: Path, batch: int, *moves: SourceMove) -> Path:
    target = checkpoint.with_name("fork")
    write_fork(plan_fork(str(checkpoint), batch, str(target), moves))
    return target


def offsets_in(fork: Path, batch: int) -> list[str]:
    return (fork / "offsets" / str(batch)).read_text().split("\n")[2:]


def names(root: Path) -> set[str]:
    return {str(each.relative_to(root)) for each in root.rglob("*") if each.is_file()}


def test_offsets_and_commits_of_two_batches_under_a_new_id(tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path / "checkpoint", *([KAFKA.replace("17", str(n))] for n in range(5)))

    fork = make_fork(checkpoint, 3)

    logs = {"metadata", "offsets/2", "offsets/3", "commits/2", "commits/3"}
    assert names(fork) == logs | {f"{Path(name).parent}/.{Path(name).name}.crc".removeprefix("./") for name in logs}
    assert offsets_in(fork, 3) == offsets_in(fork, 2) == ['{"orders":{"0":3,"1":4}}']
    assert json.loads((fork / "metadata").read_text())["id"] != QUERY


def test_the_first_batch_alone(tmp_path: Path) -> None:
    fork = make_fork(make_checkpoint(tmp_path / "checkpoint", [RATE], [RATE]), 0)

    assert sorted(each.name for each in (fork / "offsets").iterdir()) == [".0.crc", "0"]


def test_checksums_are_those_that_spark_wrote() -> None:
    """The bytes that Spark 3.5 left beside the `metadata` of a query."""
    content = b'{"id":"9f8648c3-0809-4866-86c8-1b19ed8653c6"}'

    assert checksums_of(content) == bytes.fromhex("63726300000002004da2f8a1")
    assert len(checksums_of(bytes(1025))) == 8 + 3 * 4


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_delta_moves_to_a_clone(tmp_path: Path, version: str) -> None:
    """Sources stand by place, or since Spark 4.2 by name; one that reads another table stays."""
    offsets = [delta_offset(ORDERS, 4), KAFKA, "-", delta_offset(ORDERS, 4)]
    lines = offsets if version == "v1" else [f"{'abcd'[n]}:{text}" for n, text in enumerate(offsets)]
    checkpoint = make_checkpoint(tmp_path / "checkpoint", lines, lines, version=version)
    old = make_table(tmp_path / "orders", ORDERS, *[WRITE] * 6)
    new = make_table(tmp_path / "mended", MENDED, clone_of(3), WRITE)

    fork = make_fork(checkpoint, 1, SourceMove(str(old), f"file://{new}"))

    moved = [delta_offset(MENDED, 1), KAFKA, "-", delta_offset(MENDED, 1)]
    assert offsets_in(fork, 1) == (
        moved if version == "v1" else [f"{'abcd'[n]}:{text}" for n, text in enumerate(moved)]
    )
    assert (fork / "offsets" / "1").read_text().startswith(version)


def test_delta_moves_to_a_version_that_is_named(tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path / "checkpoint", [delta_offset(ORDERS, 4)])
    new = make_table(tmp_path / "copy", MENDED, WRITE, WRITE, WRITE)

    fork = make_fork(checkpoint, 0, SourceMove("0", str(new), 1))

    assert offsets_in(fork, 0) == [delta_offset(MENDED, 2)]


def make_iceberg(root: Path, *snapshots: tuple[int, int, str]) -> Path:
    """A table of snapshots in a row: how many files each added, and of what kind it is; the last is the current one."""
    line, parent = [], None
    for number, added, operation in snapshots:
        summary = {"operation": operation, "added-data-files": str(added)}
        line.append({"snapshot-id": number, "parent-snapshot-id": parent, "summary": summary})
        parent = number
    write(root / "metadata" / "v9.metadata.json", "{}")
    write(root / "metadata" / "v10.metadata.json", json.dumps({"current-snapshot-id": parent, "snapshots": line}))
    return root


def test_iceberg_moves_to_a_snapshot_that_is_named(tmp_path: Path) -> None:
    """Where the stream began stands in a file of its own, whose checksums are of the new content."""
    checkpoint = make_checkpoint(tmp_path / "checkpoint", [ICEBERG, KAFKA])
    for name in ("0", ".0.crc"):
        write(checkpoint / "sources" / "0" / "offsets" / name, "of the old table")
    old = make_iceberg(tmp_path / "orders", (6, 1, "append"), (7, 2, "append"), (8, 1, "append"))
    new = make_iceberg(tmp_path / "mended", (70, 3, "append"), (71, 1, "append"))

    fork = make_fork(checkpoint, 0, SourceMove(str(old), str(new), 70))

    begin = '{"version":1,"snapshot_id":70,"position":3,"scan_all_files":false}'
    offsets = fork / "sources" / "0" / "offsets"
    assert offsets_in(fork, 0) == [begin, KAFKA]
    assert (offsets / "0").read_text() == begin
    assert (offsets / ".0.crc").read_bytes() == checksums_of(begin.encode())


@pytest.mark.parametrize(
    ("old", "new", "version", "words"),
    [
        ((7, 3, "append"), (70, 1, "append"), 70, "ends in the middle of snapshot 7"),
        ((7, 2, "append"), (70, 1, "append"), 71, "has no snapshot 71 on main"),
        ((7, 2, "append"), (70, 1, "overwrite"), 70, "of the kind overwrite"),
        ((7, 2, "append"), (70, 1, "append"), None, "say which snapshot"),
        ((6, 2, "append"), (70, 1, "append"), 70, "no source of the query reads"),
    ],
)
def test_moves_of_iceberg_that_would_lose_or_repeat_rows(
    tmp_path: Path, old: tuple[int, int, str], new: tuple[int, int, str], version: int | None, words: str
) -> None:
    checkpoint = make_checkpoint(tmp_path / "checkpoint", [ICEBERG])
    here, there = make_iceberg(tmp_path / "orders", old), make_iceberg(tmp_path / "mended", new)

    refused(ForkError, words, checkpoint, 0, SourceMove(str(here), str(there), version))


def test_tables_of_another_format(tmp_path: Path) -> None:
    iceberg, delta = make_iceberg(tmp_path / "ice", (7, 2, "append")), make_table(tmp_path / "delta", ORDERS, WRITE)
    of_iceberg = make_checkpoint(tmp_path / "one", [ICEBERG])
    of_delta = make_checkpoint(tmp_path / "other", [delta_offset(ORDERS, 1)])

    refused(ConfigurationError, "isn't an Iceberg table", of_iceberg, 0, SourceMove(str(iceberg), str(delta), 7))
    refused(ConfigurationError, "isn't a Delta table", of_delta, 0, SourceMove(str(delta), str(iceberg), 0))
    refused(ForkError, "name the directory of the table", of_iceberg, 0, SourceMove("0", str(iceberg), 7))


def test_an_id_that_only_a_checksum_repeats(tmp_path: Path) -> None:
    """The versions that set it were cleaned."""
    table = make_table(tmp_path / "orders", ORDERS, *[WRITE] * 3)
    (table / "_delta_log" / f"{0:020}.json").unlink()
    write(table / "_delta_log" / f"{2:020}.crc", json.dumps({"metadata": {"id": ORDERS}}))
    checkpoint = make_checkpoint(tmp_path / "checkpoint", [delta_offset(ORDERS, 3)])
    new = make_table(tmp_path / "mended", MENDED, clone_of(2))

    assert offsets_in(make_fork(checkpoint, 0, SourceMove(str(table), str(new))), 0) == [delta_offset(MENDED, 1)]


def test_state_up_to_the_batch(tmp_path: Path) -> None:
    """Batch 1 leaves version 2; what batches number ends with batch 1; a zip says which shared files it needs."""
    checkpoint = make_checkpoint(tmp_path / "checkpoint", [RATE], [RATE], [RATE])
    store = checkpoint / "state" / "0" / "0"
    zipped(store / "0.zip", "000001-first.sst")
    zipped(store / "1.zip", "000004-old.sst")
    write(store / "1.changelog")
    write(store / "2.changelog")
    zipped(store / "3.zip", "000009-new.sst")
    for name in ("000001-first.sst", "000004-old.sst", "000009-new.sst"):
        write(store / "SSTs" / name)
    for name in (".2.changelog.crc", "2.changelog.crc", ".2.changelog.crc.crc", ".3.zip.crc", ".2.changelog.1.tmp"):
        write(store / name)
    write(store / "_metadata" / "schema")
    for number in range(3):
        write(checkpoint / "state" / "0" / "_metadata" / "v2" / str(number))
        write(checkpoint / "state" / "0" / "_stateSchema" / "default" / f"{number}_{UUIDS[number]}")

    fork = make_fork(checkpoint, 1)

    below = {
        "1.zip",
        "1.changelog",
        "2.changelog",
        ".2.changelog.crc",
        "2.changelog.crc",
        ".2.changelog.crc.crc",
        "SSTs/000004-old.sst",
    }
    of_batches = {f"_metadata/v2/{n}" for n in (0, 1)} | {f"_stateSchema/default/{n}_{UUIDS[n]}" for n in (0, 1)}
    assert names(fork / "state" / "0") == {f"0/{name}" for name in below} | {"0/_metadata/schema"} | of_batches


def zipped(path: Path, *shared: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fields = {"sstFiles": [{"localFileName": "000004.sst", "dfsSstFileName": each, "sizeBytes": 1} for each in shared]}
    with zipfile.ZipFile(path, "w") as opened:
        opened.writestr("metadata", "v1\n" + json.dumps(fields))


def test_a_file_source_forgets_the_files_of_later_batches(tmp_path: Path) -> None:
    """It takes a file that stands in its log for one that was read."""
    checkpoint = make_checkpoint(tmp_path / "checkpoint", *([f'{{"logOffset":{n}}}'] for n in range(4)))
    for name in ("0", "1.compact", "2", "3", ".2.crc", ".3.crc"):
        write(checkpoint / "sources" / "0" / name)

    fork = make_fork(checkpoint, 2)

    assert names(fork / "sources" / "0") == {"0", "1.compact", "2", ".2.crc"}


def test_what_kafka_began_with_stays(tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path / "checkpoint", [KAFKA])
    write(checkpoint / "sources" / "0" / "0", "begin")

    assert (make_fork(checkpoint, 0) / "sources" / "0" / "0").read_text() == "begin"


@pytest.mark.parametrize(
    ("offset", "words"),
    [
        (PAIMON, "begins elsewhere without a word"),
        ('{"offset":3,"timestamp":9}', "of a kind that this headwater doesn't know"),
        ("2026-01-01", "of a kind that this headwater doesn't know"),
    ],
)
def test_sources_that_cant_go_on(tmp_path: Path, offset: str, words: str) -> None:
    refused(ForkError, words, make_checkpoint(tmp_path / "checkpoint", [offset]), 0)


@pytest.mark.parametrize(
    ("offset", "words"),
    [(KAFKA, "mean these topics alone"), (RATE, "reads no table"), ('{"logOffset":1}', "whose files")],
)
def test_sources_that_cant_move(tmp_path: Path, offset: str, words: str) -> None:
    new = make_table(tmp_path / "mended", MENDED, clone_of(3))

    refused(ForkError, words, make_checkpoint(tmp_path / "checkpoint", [offset]), 0, SourceMove("0", str(new)))


@pytest.mark.parametrize(
    ("offset", "first", "version", "words"),
    [
        (delta_offset(ORDERS, 4, 2), clone_of(3), None, "ends in the middle of version 4"),
        (delta_offset(ORDERS, 4, is_state=True), clone_of(3), None, "ends in the middle of version 4"),
        (delta_offset(ORDERS, 5), clone_of(3), None, "clone of version 3: batch 0 ends so"),
        (delta_offset(ORDERS, 5), clone_of(2), None, "clone of version 2: no batch that is still there ends so"),
        (delta_offset(ORDERS, 4), WRITE, None, "doesn't begin as a clone"),
        (delta_offset(ORDERS, 4), WRITE, 7, "has no version 7: its newest is 0"),
    ],
)
def test_moves_that_would_lose_or_repeat_rows(
    tmp_path: Path, offset: str, first: dict[str, Any], version: int | None, words: str
) -> None:
    checkpoint = make_checkpoint(tmp_path / "checkpoint", [delta_offset(ORDERS, 4)], [offset])
    new = make_table(tmp_path / "mended", MENDED, first)

    refused(ForkError, words, checkpoint, 1, SourceMove("0", str(new), version))


def test_a_table_that_nobody_reads(tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path / "checkpoint", [delta_offset(ORDERS, 4)])
    other = make_table(tmp_path / "other", MENDED, WRITE)

    refused(ForkError, "no source of the query reads", checkpoint, 0, SourceMove(str(other), str(other)))
    refused(ForkError, "moved twice", checkpoint, 0, *[SourceMove("0", str(other), 0)] * 2)
    refused(ConfigurationError, "isn't a Delta table", checkpoint, 0, SourceMove("0", str(tmp_path)))
    refused(ConfigurationError, "isn't a Delta or Iceberg table", checkpoint, 0, SourceMove(str(tmp_path), str(other)))
    refused(ConfigurationError, "isn't on this machine", checkpoint, 0, SourceMove("0", "s3://bucket/orders"))


def test_a_schema_that_is_tracked(tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path / "checkpoint", [delta_offset(ORDERS, 4)])
    write(checkpoint / "sources" / "0" / f"_schema_log_{ORDERS}" / "0")
    new = make_table(tmp_path / "mended", MENDED, clone_of(3))

    refused(ForkError, "tracks the schema", checkpoint, 0, SourceMove("0", str(new)))


def test_batches_that_arent_there(tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path / "checkpoint", [RATE], [RATE], [RATE], committed=2)

    refused(ForkError, "batch 2 of .* hasn't been committed: the query is running it now", checkpoint, 2)
    refused(ForkError, "has no batch 9: it has the committed batches 0 to 1", checkpoint, 9)
    refused(ForkError, "no batch of .* has been committed", make_checkpoint(tmp_path / "new", [RATE], committed=0), 0)


def test_places(tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path / "checkpoint", [RATE])

    with pytest.raises(ConfigurationError, match="isn't a checkpoint"):
        plan_fork(str(tmp_path), 0, str(tmp_path / "fork"))
    with pytest.raises(ConfigurationError, match="exists"):
        plan_fork(str(checkpoint), 0, str(tmp_path))
    with pytest.raises(ConfigurationError, match="lies within"):
        plan_fork(str(checkpoint), 0, str(checkpoint / "fork"))
    with pytest.raises(ConfigurationError, match="isn't on this machine"):
        plan_fork("hdfs://cluster/checkpoint", 0, str(tmp_path / "fork"))


def test_damage(tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path / "checkpoint", [RATE], [RATE])
    store = checkpoint / "state" / "0" / "0"
    write(store / "1.delta")
    refused(ForkError, "lacks version 2", checkpoint, 1)
    write(store / "2.delta")
    write(checkpoint / "state" / "0" / "2" / "1.snapshot")
    refused(ForkError, "no state of partition 1", checkpoint, 0)
    write(checkpoint / "state" / "0" / "1" / "1.snapshot")
    write(checkpoint / "commits" / "0", json.dumps({}))
    refused(ForkError, "of a version that this headwater doesn't know", checkpoint, 0)
    ids = {"stateUniqueIds": {"0": [[UUIDS[0]], [UUIDS[1]], [UUIDS[2]]]}}
    write(checkpoint / "commits" / "0", "v2\n" + json.dumps(ids))
    refused(ForkError, f"lacks version 1 with the id {UUIDS[0]}", checkpoint, 0)
    write(checkpoint / "theirs")
    refused(ForkError, "holds theirs besides what Spark keeps there", checkpoint, 1)


def test_partitions_and_files_that_are_gone(tmp_path: Path) -> None:
    """The operator says itself how many partitions it has; the zip, which files."""
    checkpoint = make_checkpoint(tmp_path / "checkpoint", [RATE])
    operator = checkpoint / "state" / "0"
    zipped(operator / "0" / "1.zip", "000004-old.sst")
    refused(ForkError, "needs 000004-old.sst", checkpoint, 0)
    write(operator / "0" / "SSTs" / "000004-old.sst")
    write(operator / "_metadata" / "metadata", 'v1\n{"stateStoreInfo":[{"storeName":"default","numPartitions":2}]}')
    refused(ForkError, "no state of partition 1", checkpoint, 0)
    write(operator / "1" / "1.zip", "no zip")
    refused(ForkError, "can't be read as a snapshot of RocksDB", checkpoint, 0)


def test_nothing_is_left_where_a_file_vanishes(tmp_path: Path) -> None:
    """As where the query runs, and Spark removes the files of its older batches meanwhile."""
    checkpoint = make_checkpoint(tmp_path / "checkpoint", [RATE])
    write(checkpoint / "state" / "0" / "0" / "1.delta")
    plan = plan_fork(str(checkpoint), 0, str(tmp_path / "fork"))
    (checkpoint / "state" / "0" / "0" / "1.delta").unlink()

    with pytest.raises(ForkError, match="was removed while the checkpoint was copied"):
        write_fork(plan)

    assert [each.name for each in tmp_path.iterdir()] == ["checkpoint"]


def test_what_a_killed_fork_left_is_removed_by_the_next(tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path / "checkpoint", [RATE])
    write(tmp_path / ".fork.part" / "state" / "0" / "0" / "9.delta", "of the one that was killed")
    plan = plan_fork(str(checkpoint), 0, str(tmp_path / "fork"))
    opened = os.open(tmp_path / ".fork.part", os.O_RDONLY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        with pytest.raises(TransientError, match="another process is making the fork"):
            write_fork(plan)
        assert (tmp_path / ".fork.part" / "state" / "0" / "0" / "9.delta").exists()
    finally:
        os.close(opened)

    write_fork(plan)

    assert not (tmp_path / "fork" / "state").exists()
    assert not (tmp_path / ".fork.part").exists()


def refused(kind: type[HeadwaterError], words: str, checkpoint: Path, batch: int, *moves: SourceMove) -> None:
    with pytest.raises(kind, match=words):
        plan_fork(str(checkpoint), batch, str(checkpoint.with_name("refused")), moves)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint = make_checkpoint(tmp_path / "checkpoint", [delta_offset(ORDERS, 4)])
    new = make_table(tmp_path / "mended", MENDED, clone_of(3))
    words = ["stream", "fork", str(checkpoint), "--at-batch", "0", "--to", str(tmp_path / "fork"), "--map", f"0={new}"]

    assert main([*words, "--dry-run", "-o", "json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert not (tmp_path / "fork").exists()
    assert main(words) == 0
    said = capsys.readouterr().out

    assert planned["plan"]["batch"] == 0
    assert planned["plan"]["query"] == QUERY
    assert planned["sources"] == [
        {"source": "0", "reads": "Delta table", "goes_on_from": str(new), "offset": delta_offset(MENDED, 1)}
    ]
    assert f"Start the query with checkpointLocation {tmp_path / 'fork'}: its next batch is 1." in said
    assert offsets_in(tmp_path / "fork", 0) == [delta_offset(MENDED, 1)]
    assert main(words) == 78


@pytest.mark.parametrize("words", [["--map", "orders"], ["--map", "=x"], ["--at-batch", "-1"], ["--at-batch", "x"]])
def test_flags_that_arent_one(words: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["stream", "fork", "/nowhere", "--to", "/nowhere/else", *words])
