"""What raises an alert, what doesn't, and that each is raised once."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from headwater.events.catalog import ModificationEffect
from headwater.events.changes import (
    ChangeNullability,
    DropColumn,
    RecommentColumn,
    RenameColumn,
    RenameTable,
    RetypeColumn,
)
from headwater.events.health import GapReason
from headwater.events.jobs import CommitKind, JobStatus, OverwriteScope
from headwater.events.names import TableName
from tests.kit.forwarders.alerts import (
    NOON,
    Rules,
    altered,
    committed,
    dropped,
    failed,
    gap,
    lineage,
    replaced,
    rule_file,
    statement_failed,
)

DAYS = timedelta(days=1)
HOURS = timedelta(hours=1)
MINUTES = timedelta(minutes=1)


def rules(folder: Path, when: str, *lines: str) -> Rules:
    text = f'[[rules]]\nname = "rule"\nwhen = "{when}"\nto = ["pager"]\n' + "\n".join(lines)
    return Rules(rule_file(folder, text))


class TestJobFailed:
    def test_a_run_that_failed(self, tmp_path: Path) -> None:
        ours = rules(tmp_path, "job-failed")
        ours.see([failed(1), failed(2, status=JobStatus.FINISHED), failed(3, status=JobStatus.ENDED, error=None)])
        (alert,) = ours.alerts()
        assert alert["text"] == "etl is FAILED: SparkException: Job aborted"
        assert (alert["rule"], alert["severity"], alert["time"]) == ("rule", "warning", "2026-03-01T12:00:00Z")
        assert alert["values"]["run"] == "00000000-0000-0000-0000-000000000001"

    def test_a_run_raises_one_alert_whoever_reports_its_end(self, tmp_path: Path) -> None:
        ours = rules(tmp_path, "job-failed")
        found_dead = failed(1, status=JobStatus.KILLED, inferred=True, error=None)
        ours.see([found_dead, failed(2, run=found_dead.run), found_dead])
        assert ours.texts() == ["etl is KILLED, as others found: no error is known"]

    @pytest.mark.parametrize(
        ("line", "count"),
        [
            ('jobs = ["etl"]', 1),
            ('jobs = ["e*"]', 1),
            ('jobs = ["other"]', 0),
            ('exclude.jobs = ["etl"]', 0),
            ('status = ["KILLED"]', 0),
            ("statements = true", 2),
        ],
    )
    def test_what_a_rule_is_about(self, tmp_path: Path, line: str, count: int) -> None:
        ours = rules(tmp_path, "job-failed", line)
        ours.see([failed(1), statement_failed(2)])
        assert len(ours.alerts()) == count

    def test_inferred_ends_can_be_left_out(self, tmp_path: Path) -> None:
        ours = rules(tmp_path, "job-failed", "inferred = false")
        ours.see([failed(1, inferred=True)])
        assert ours.alerts() == []


class TestGap:
    def test_a_gap(self, tmp_path: Path) -> None:
        ours = rules(tmp_path, "gap")
        ours.see([gap(1), gap(1), gap(2)])
        assert ours.texts() == ["etl: lineage may be missing (SPOOL_LIMIT): the spool was full"] * 2

    def test_reasons_and_jobs(self, tmp_path: Path) -> None:
        ours = rules(tmp_path, "gap", 'reasons = ["CORRUPTION"]', 'jobs = ["etl"]')
        ours.see([gap(1), gap(2, GapReason.CORRUPTION), gap(3, GapReason.CORRUPTION, job=None)])
        assert len(ours.alerts()) == 2, "a gap that names no job concerns all"


class TestTableLate:
    def late(self, folder: Path, tables: str = "lake.sales.daily") -> Rules:
        return rules(folder, "table-late", f'tables = ["{tables}"]', 'every = "2 h"')

    def test_a_table_without_a_commit_in_time(self, tmp_path: Path) -> None:
        ours = self.late(tmp_path)
        ours.see([committed(1, NOON)])
        ours.tick(NOON + 2 * HOURS, NOON + 2 * HOURS)
        assert ours.alerts() == []
        ours.tick(NOON + 2.5 * HOURS, NOON + 2.5 * HOURS)
        assert ours.texts() == [
            "lake.sales.daily is late: its last commit is of 2026-03-01T12:00:00Z, 30 min more than 2 h ago"
        ]
        for _ in range(3):
            ours.tick(NOON + 30 * HOURS, NOON + 30 * HOURS)
        assert len(ours.alerts()) == 1, "there is one alert until the next commit"
        ours.see([committed(2, NOON + 30 * HOURS)], NOON + 30 * HOURS)
        ours.tick(NOON + 31 * HOURS, NOON + 31 * HOURS)
        ours.tick(NOON + 33 * HOURS, NOON + 33 * HOURS)
        assert len(ours.alerts()) == 2

    def test_nothing_is_late_while_the_bus_is_not_read_to_its_end(self, tmp_path: Path) -> None:
        ours = self.late(tmp_path)
        ours.see([committed(1, NOON)])
        ours.tick(NOON + 9 * HOURS, None)
        ours.see([committed(2, NOON + 8 * HOURS)])
        ours.tick(NOON + 9 * HOURS, NOON + 9 * HOURS)
        assert ours.alerts() == [], "the commit was on the bus, and unread"

    def test_only_what_the_bus_confirms_counts(self, tmp_path: Path) -> None:
        """The bus was read to its end long ago: what came since isn't known."""
        ours = self.late(tmp_path)
        ours.see([committed(1, NOON)])
        ours.tick(NOON + 9 * HOURS, NOON + 1 * HOURS)
        assert ours.alerts() == []

    def test_an_old_commit_that_comes_late_does_not_count_back(self, tmp_path: Path) -> None:
        ours = self.late(tmp_path)
        ours.see([committed(2, NOON + 3 * HOURS), committed(1, NOON)])
        ours.tick(NOON + 4 * HOURS, NOON + 4 * HOURS)
        assert ours.alerts() == []

    @pytest.mark.parametrize(
        ("kind", "replaced", "brings_data"),
        [
            (CommitKind.COMPACT, OverwriteScope.UNKNOWN, False),
            (CommitKind.REPLACE, OverwriteScope.UNKNOWN, False),
            (CommitKind.REPLACE, OverwriteScope.ALL, True),
        ],
        ids=["compaction", "manifests of Iceberg", "CREATE OR REPLACE TABLE AS SELECT of Delta"],
    )
    def test_what_brings_data(
        self, tmp_path: Path, kind: CommitKind, replaced: OverwriteScope, brings_data: bool
    ) -> None:
        ours = self.late(tmp_path)
        ours.see([committed(1, NOON), committed(2, NOON + 2 * HOURS, kind=kind, replaced=replaced)])
        ours.tick(NOON + 3 * HOURS, NOON + 3 * HOURS)
        assert (len(ours.alerts()) == 0) is brings_data

    def test_a_table_that_was_never_seen_is_expected_from_the_first_look_on(self, tmp_path: Path) -> None:
        ours = self.late(tmp_path)
        ours.tick(NOON, NOON)
        ours.tick(NOON + 1 * HOURS, NOON + 1 * HOURS)
        assert ours.alerts() == []
        ours.tick(NOON + 3 * HOURS, NOON + 3 * HOURS)
        (text,) = ours.texts()
        assert "its last commit is of before 2026-03-01T12:00:00Z, if there is one" in text
        ours.see([committed(1, NOON + 3 * HOURS)])
        ours.tick(NOON + 4 * HOURS, NOON + 4 * HOURS)
        ours.tick(NOON + 6 * HOURS, NOON + 6 * HOURS)
        assert len(ours.alerts()) == 2, "from its first commit on, it is that table"

    def test_tables_that_were_abandoned_long_ago_raise_nothing_on_a_first_run(self, tmp_path: Path) -> None:
        ours = self.late(tmp_path, tables="*")
        ours.see([committed(number, NOON - 90 * DAYS, f"old{number}") for number in range(1, 50)])
        ours.see([committed(50, NOON - 3 * HOURS, "daily")])
        ours.tick(NOON, NOON)
        assert [each["values"]["table"] for each in ours.alerts()] == ["lake.sales.daily"]

    def test_one_that_was_on_time_is_late_however_long_nobody_looked(self, tmp_path: Path) -> None:
        ours = self.late(tmp_path)
        ours.see([committed(1, NOON)])
        ours.tick(NOON, NOON)
        ours.tick(NOON + 9 * DAYS, NOON + 9 * DAYS)
        assert len(ours.alerts()) == 1

    def test_a_table_that_is_gone_is_not_late(self, tmp_path: Path) -> None:
        ours = self.late(tmp_path, tables="*")
        renamed = RenameTable(table=TableName(catalog="lake", database="sales", table="b2"))
        ours.see([committed(1, NOON, "a"), committed(2, NOON, "b"), committed(3, NOON, "c")])
        later = NOON + HOURS
        ours.see([dropped(4, later, "a"), altered(5, renamed, at=later, name="b")])
        ours.tick(NOON + 3 * HOURS, NOON + 3 * HOURS)
        assert [each["values"]["table"] for each in ours.alerts()] == ["lake.sales.c"]


class TestColumnChanged:
    @pytest.mark.parametrize(
        ("change", "text"),
        [
            (DropColumn(path=("amount",)), "lake.sales.orders: amount was dropped, and billing reads that"),
            (DropColumn(path=("AMOUNT",)), "lake.sales.orders: AMOUNT was dropped, and billing reads that"),
            (
                RenameColumn(path=("amount",), new_name="total"),
                "lake.sales.orders: amount was renamed, and billing reads that",
            ),
            (
                RetypeColumn(path=("amount",), type='"string"'),
                "lake.sales.orders: amount was retyped, and billing reads that",
            ),
            (
                ChangeNullability(path=("amount",), nullable=True),
                "lake.sales.orders: amount has another nullability, and billing reads that",
            ),
            (DropColumn(path=("address",)), "lake.sales.orders: address was dropped, and billing reads that"),
            (
                DropColumn(path=("address", "zip", "code")),
                "lake.sales.orders: address.zip.code was dropped, and billing reads that",
            ),
            (
                RenameTable(table=TableName(catalog="lake", database="sales", table="orders2")),
                "lake.sales.orders: the table was renamed, and billing reads that",
            ),
            (DropColumn(path=("note",)), None),
            (DropColumn(path=("address", "city")), None),
            (RecommentColumn(path=("amount",), comment="x"), None),
        ],
        ids=repr,
    )
    def test_a_change_of_what_a_job_reads(self, tmp_path: Path, change: object, text: str | None) -> None:
        ours = rules(tmp_path, "column-changed")
        ours.see([lineage(1, "billing", "amount", "address.zip"), altered(2, change, at=NOON + HOURS)])  # type: ignore[arg-type]
        assert ours.texts() == ([] if text is None else [text])

    def test_a_table_that_is_dropped_or_replaced(self, tmp_path: Path) -> None:
        ours = rules(tmp_path, "column-changed")
        ours.see([lineage(1, "billing", "amount", "id")])
        same = [("ID", "long"), ("amount", "double"), ("more", "int")]
        ours.see([replaced(2, *same, at=NOON + HOURS)])
        assert ours.texts() == []
        ours.see([replaced(3, ("id", "string"), at=NOON + HOURS), dropped(4, at=NOON + 2 * HOURS)])
        assert ours.texts() == [
            "lake.sales.orders: amount, id was dropped and was retyped, and billing reads that",
            "lake.sales.orders: the table was dropped, and billing reads that",
        ]

    def test_each_job_that_reads_it_gets_an_alert(self, tmp_path: Path) -> None:
        ours = rules(tmp_path, "column-changed", 'jobs = ["b*"]')
        ours.see([lineage(number, job, "amount") for number, job in enumerate(["bank", "billing", "audit"], 1)])
        ours.see([altered(9, DropColumn(path=("amount",)), at=NOON + HOURS)])
        assert sorted(each["values"]["job"] for each in ours.alerts()) == ["bank", "billing"]

    @pytest.mark.parametrize(
        ("line", "count"),
        [
            ('columns = ["am*"]', 1),
            ('columns = ["id"]', 0),
            ('tables = ["sales.orders"]', 1),
            ('tables = ["customers"]', 0),
            ('changes = ["retyped"]', 0),
        ],
    )
    def test_what_a_rule_is_about(self, tmp_path: Path, line: str, count: int) -> None:
        ours = rules(tmp_path, "column-changed", line)
        ours.see([lineage(1, "billing", "amount"), altered(2, DropColumn(path=("amount",)), at=NOON + HOURS)])
        assert len(ours.alerts()) == count

    def test_lineage_that_arrives_after_the_change_counts_if_it_is_older(self, tmp_path: Path) -> None:
        ours = rules(tmp_path, "column-changed")
        ours.see([altered(2, DropColumn(path=("amount",)), at=NOON + HOURS)])
        ours.see([lineage(3, "since", "amount", at=NOON + 2 * HOURS), lineage(1, "billing", "amount")])
        assert [each["values"]["job"] for each in ours.alerts()] == ["billing"]

    def test_a_job_that_has_another_shape_since_reads_the_column_no_more(self, tmp_path: Path) -> None:
        ours = rules(tmp_path, "column-changed")
        ours.see([lineage(1, "billing", "amount"), lineage(2, "billing", "id", at=NOON + HOURS)])
        ours.see([altered(3, DropColumn(path=("amount",)), at=NOON + 2 * HOURS)])
        assert ours.alerts() == []
        ours.see([lineage(4, "billing", "amount", at=NOON + 3 * HOURS)])
        ours.see([altered(5, DropColumn(path=("amount",)), at=NOON + 4 * HOURS)])
        assert len(ours.alerts()) == 1, "both shapes are in use"

    def test_what_may_not_have_taken_effect_raises_nothing(self, tmp_path: Path) -> None:
        ours = rules(tmp_path, "column-changed")
        maybe = dropped(2, at=NOON + HOURS).model_copy(update={"effect": ModificationEffect.UNKNOWN})
        ours.see([lineage(1, "billing", "amount"), maybe])
        assert ours.alerts() == []


class TestHowMany:
    def test_old_events_raise_nothing_and_their_copies_neither(self, tmp_path: Path) -> None:
        ours = rules(tmp_path, "job-failed")
        ours.see([failed(1, NOON - 2 * DAYS), failed(2, NOON - 23 * HOURS), failed(1, NOON - 2 * DAYS)], NOON)
        assert [each["time"] for each in ours.alerts()] == ["2026-02-28T13:00:00Z"]

    def test_a_storm_is_summed_up(self, tmp_path: Path) -> None:
        ours = rules(tmp_path, "job-failed", "limit = 3", 'per = "10 min"')
        ours.see((failed(number, job=f"job{number}") for number in range(1, 401)), NOON + MINUTES)
        assert len(ours.alerts()) == 3
        ours.tick(NOON + 5 * MINUTES)
        assert len(ours.alerts()) == 3
        ours.tick(NOON + 12 * MINUTES)
        assert len(ours.alerts()) == 4
        last = ours.alerts()[-1]
        assert last["count"] == 397
        assert last["text"].startswith(
            "397 more alerts of this rule, from 2026-03-01T12:00:00Z to 2026-03-01T12:00:00Z: job4, "
        )
        ours.see([failed(5_000, NOON + 13 * MINUTES)], NOON + 13 * MINUTES)
        ours.tick(NOON + 40 * MINUTES)
        assert len(ours.alerts()) == 5, "after that, alerts are sent one by one again"

    def test_rules_have_limits_of_their_own(self, tmp_path: Path) -> None:
        text = "".join(
            f'[[rules]]\nname = "{name}"\nwhen = "job-failed"\nlimit = 1\nto = ["pager"]\n' for name in ("a", "b")
        )
        ours = Rules(rule_file(tmp_path, text))
        ours.see([failed(1), failed(2)])
        assert [each["rule"] for each in ours.alerts()] == ["a", "b"]

    def test_a_restart_raises_nothing_again(self, tmp_path: Path) -> None:
        for _ in range(3):
            ours = rules(tmp_path, "job-failed")
            ours.store.close()
            ours = Rules(
                rule_file(tmp_path, '[[rules]]\nname = "r"\nwhen = "job-failed"\nto = ["pager"]'), tmp_path / "s"
            )
            ours.see([failed(1), failed(2)])
            assert len(ours.alerts()) == 2
            ours.store.close()

    def test_what_is_kept_is_bounded(self, tmp_path: Path) -> None:
        ours = rules(tmp_path, "job-failed", "limit = 1000")
        ours.see(failed(number) for number in range(1, 101))
        ours.store.prune(raised=NOON.timestamp() + 1, messages=NOON.timestamp() + 600)
        assert ours.store.count("raised") == ours.store.count("outbox") == 0
        ours.see([failed(1)], NOON + 2 * DAYS)
        assert ours.alerts() == [], "a copy of what was forgotten is old"
