"""The plan of a correction as text: what is made, run and switched, and what can't be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from headwater.cli.answers import limit_texts_of
from headwater.cli.output import Size, shown, span_text
from headwater.terminal import printable

if TYPE_CHECKING:  # SQLAlchemy is imported where a store is opened
    from headwater.lineage.questions.commit_facts import Amount
    from headwater.versions.correction import CorrectionPlan, PlannedJob, PlannedTable

_PARTS: Final = 4
"""How many ranges of snapshots a line has."""


def plan_text(plan: CorrectionPlan) -> str:
    """Return a plan for people."""
    heading = f"Correction of {plan.source} from snapshot {plan.snapshot} on, {plan.mode.value}. It changes nothing."
    chapters = [
        ["What is wrong, or was", *_wrong_lines(plan)],
        ["What is made", *(line for table in plan.corrected for line in _mirror_lines(table))],
        ["What is run, in this order", *(line for job in plan.needed_jobs for line in _job_lines(job))],
        ["What is switched, in this order", *map(_switch_line, plan.corrected)],
        ["What can't be corrected", *(line for table in plan.uncorrectable for line in _problem_lines(table))],
        ["What is left wrong, as --only leaves it out", *(f"  ! {table}" for table in plan.left_out)],
        ["What is right already", *map(_right_line, plan.already_right)],
        ["What isn't known, so that more may be wrong", *(f"  ? {each}" for each in limit_texts_of(plan.limits))],
        _cost_lines(plan),
        [_summary(plan), f"Complete until {shown(plan.complete_until)}."],
    ]
    shown_chapters = [[heading], *(chapter for chapter in chapters if len(chapter) > 1)]
    return "\n\n".join("\n".join(map(printable, chapter)) for chapter in shown_chapters) + "\n"


def snapshot_ranges(snapshots: Sequence[int]) -> str:
    """Return snapshots in short: 4..6, 9."""
    parts: list[list[int]] = []
    for snapshot in snapshots:
        if parts and snapshot == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], snapshot]
        else:
            parts.append([snapshot])
    texts = ["..".join(map(str, part)) for part in parts[:_PARTS]]
    left = len(snapshots) - sum(part[-1] - part[0] + 1 for part in parts[:_PARTS])
    return ", ".join(texts) + (f" and {left} more" if left else "") if texts else "-"


def _wrong_lines(plan: CorrectionPlan) -> list[str]:
    rows = [("table", "wrong snapshots", "newest", "last right", "made from")]
    for table in plan.tables:
        sources = ", ".join(table.made_from) + (" (a cycle)" if table.in_cycle else "")
        wrong = snapshot_ranges(table.snapshots) if table.snapshots else f"no snapshots ({table.format or 'unknown'})"
        rows.append((table.table, wrong, shown(table.newest), shown(table.last_right), sources or "-"))
    return aligned(rows)


def _mirror_lines(table: PlannedTable) -> Iterator[str]:
    kind = "mirror" if table.mirror is None else table.mirror.value
    begins = "empty" if table.starts_at is None else f"at snapshot {table.starts_at}"
    yours = ": the rows are corrected there" if table.is_source else ""
    yield f"  + a {kind} of {table.table}, {begins}{yours}"
    yield from (f"      {note}" for note in table.notes)


def _job_lines(job: PlannedJob) -> Iterator[str]:
    sign = "?" if job.lacks_command else ">"
    yield f"  {sign} {job.job}: {', '.join(job.reads) or '-'} -> {', '.join(job.writes)}"
    group = f" of the group {job.group}" if job.group else ""
    runs = "" if job.kind.value != "batch job" else f" of {number_text(job.runs, 'run')}"
    yield f"      {job.kind.value}{group}, in place of {number_text(job.commits, 'commit')}{runs}"
    if job.checkpoint is not None:
        batch = "" if job.last_right_batch is None else f", right up to batch {job.last_right_batch}"
        yield f"      checkpoint {job.checkpoint}{batch}"
    yield from (f"      run {command}" for command in job.commands)
    if job.lacks_command:
        yield f'      nothing says how it is run: add [jobs."{job.job}"] run = "SCRIPT" to correction.toml'
    last = "" if job.last_duration is None else f"; its last run took {span_text(job.last_duration)}"
    yield f"      rows: read {amount_text(job.read)}, wrote {amount_text(job.written)}{last}"
    yield from (f"      {note}" for note in job.notes)


def _switch_line(table: PlannedTable) -> str:
    return f"  ~ {table.table}, from snapshot {table.newest}"


def _problem_lines(table: PlannedTable) -> Iterator[str]:
    yield f"  - {table.table}"
    yield from (f"      {problem}" for problem in table.problems)


def _right_line(table: PlannedTable) -> str:
    if table.verdict.value == "DROPPED":
        return f"  = {table.table}: what was wrong was dropped"
    return f"  = {table.table}: its newest snapshot {table.newest} has nothing of what was wrong"


def _cost_lines(plan: CorrectionPlan) -> list[str]:
    needed = [job.last_duration for job in plan.needed_jobs if job.last_duration is not None]
    lines = ["What it costs, by what the wrong commits took"]
    if not plan.needed_jobs:
        return lines
    lines += [f"  rows     read {amount_text(plan.read)}, wrote {amount_text(plan.written)}"]
    if needed:
        known = f"{len(needed)} of {number_text(len(plan.needed_jobs), 'job')}"
        lines.append(f"  time     {span_text(sum(needed[1:], needed[0]))}, the last runs of {known} added up")
    if plan.mode.value == "full":
        lines.append("  in full, jobs read all rows of their inputs, which are more; incrementally those are left out")
    at = [f"{table.table}@{table.starts_at}" for table in plan.corrected if table.starts_at is not None]
    if at:
        lines.append(f"  needed   {', '.join(at)}: the store doesn't know whether they have expired")
    return lines


def _summary(plan: CorrectionPlan) -> str:
    parts = [
        f"{number_text(len(plan.corrected), 'mirror')} to make",
        f"{number_text(len(plan.needed_jobs), 'job')} to run",
        f"{number_text(len(plan.corrected), 'table')} to switch",
    ]
    lacking = sum(job.lacks_command for job in plan.jobs)
    others = [
        (len(plan.uncorrectable), "can't be corrected"),
        (len(plan.left_out), "left out"),
        (len(plan.already_right), "right already"),
        (lacking, "without a command"),
    ]
    parts += [f"{number} {words}" for number, words in others if number]
    return f"Plan: {', '.join(parts)}."


def amount_text(amount: Amount) -> str:
    if not amount.rows and amount.unknown:
        return "uncounted"
    least = "at least " if amount.unknown else ""
    size = f" ({Size(amount.bytes)})" if amount.bytes else ""
    return f"{least}{amount.rows:,}{size}"


def number_text(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        f"  {'  '.join(f'{cell:<{width}}' for cell, width in zip(row, widths, strict=True))}".rstrip() for row in rows
    ]
