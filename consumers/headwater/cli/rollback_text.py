"""The plan of a roll-back as text: what goes back, what it loses, what can't go back, and what has to be done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headwater.cli.answers import limit_texts_of
from headwater.cli.correction_text import aligned, amount_text, number_text
from headwater.cli.output import shown
from headwater.terminal import printable

if TYPE_CHECKING:  # SQLAlchemy is imported where a store is opened
    from headwater.versions.rollback import RollbackPlan, RolledJob, RolledTable


def plan_text(plan: RollbackPlan) -> str:
    """Return a plan for people."""
    more = ", with all that was made from it" if plan.is_chain else ""
    by_verdict = {name: [table for table in plan.tables if table.verdict.value == name] for name in ("STAYS", "LEFT")}
    chapters = [
        ["What goes back, in this order", *_back_lines(plan)],
        ["What can't go back", *(line for table in plan.stuck for line in _stuck_lines(table))],
        ["What keeps what is rolled back, and no longer belongs to it", *map(_left_line, by_verdict["LEFT"])],
        ["What stays", *map(_stays_line, by_verdict["STAYS"])],
        ["Jobs", *(line for job in plan.jobs for line in _job_lines(job))],
        [
            "Data versions",
            *(f"  ~ {each.group}: from {each.newest} back to {each.target}" for each in plan.groups),
        ],
        ["What isn't known, so that more may be lost", *(f"  ? {each}" for each in limit_texts_of(plan.limits))],
        _together_lines(plan),
        [_summary(plan), f"Complete until {shown(plan.complete_until)}."],
    ]
    shown_chapters = [[f"Roll-back to {plan.asked}{more}."], *(chapter for chapter in chapters if len(chapter) > 1)]
    return "\n\n".join("\n".join(map(printable, chapter)) for chapter in shown_chapters) + "\n"


def _back_lines(plan: RollbackPlan) -> list[str]:
    rows = [("table", "from", "to", "loses", "made by")]
    for table in plan.going_back:
        unreported = f", {table.unreported} of them unreported" if table.unreported else ""
        loses = f"{number_text(table.commits, 'commit')}{unreported}, rows written: {amount_text(table.lost)}"
        rows.append((table.table, shown(table.newest), shown(table.target), loses, ", ".join(table.jobs) or "-"))
    return aligned(rows) if len(rows) > 1 else []


def _stuck_lines(table: RolledTable) -> Iterator[str]:
    yield f"  - {table.table}"
    yield from (f"      {problem}" for problem in table.problems)


def _left_line(table: RolledTable) -> str:
    at = "" if table.newest is None else f"@{table.newest}"
    return f"  ! {table.table}{at}: {'; '.join([*table.notes, *table.problems])}"


def _stays_line(table: RolledTable) -> str:
    return f"  = {table.table}@{table.newest} has nothing of what is rolled back"


def _job_lines(job: RolledJob) -> Iterator[str]:
    sign = "-" if job.problems else ">" if job.moves else "?"
    lost = f", {number_text(job.commits, 'commit')} lost" if job.commits else ""
    yield f"  {sign} {job.job}: {job.kind.value}{f' of the group {job.group}' if job.group else ''}{lost}"
    yield from (f"      {problem}" for problem in job.problems)
    if job.moves:
        behind = "begins anew" if job.keeps is None else f"goes on behind data version {job.keeps}"
        yield f"      {behind}, under a new incarnation; the process that runs now is refused"
    elif job.kind.value == "stream":
        if job.keeps is not None:
            fork = f"headwater stream fork {job.checkpoint or 'CHECKPOINT'} --at-batch {job.keeps} --to NEW"
            yield f"      stop it, and start it with the checkpoint that this makes: {fork}"
        yield from (f"      {note}" for note in job.notes)
    elif not job.problems:
        yield "      run it again for what it lost, unless its next run makes that anyway"


def _together_lines(plan: RollbackPlan) -> list[str]:
    if len(plan.tables) < 2 or not plan.is_chain:
        return []
    if plan.belong_together:
        return ["Then", "  = the tables that go back or stay belong together"]
    verdict = "don't belong together" if plan.belong_together is False else "may not belong together"
    return ["Then", f"  ! the tables that go back or stay {verdict}", *(f"      {each}" for each in plan.differences)]


def _summary(plan: RollbackPlan) -> str:
    commits = sum(table.commits for table in plan.going_back)
    parts = [f"{number_text(len(plan.going_back), 'table')} to roll back ({number_text(commits, 'commit')} lost)"]
    others = [
        (len(plan.moving_jobs), "job moves", "jobs move"),
        (len(plan.stuck) + len(plan.stuck_jobs), "can't go back", "can't go back"),
        (sum(table.verdict.value == "LEFT" for table in plan.tables), "left", "left"),
        (sum(table.verdict.value == "STAYS" for table in plan.tables), "stays", "stay"),
    ]
    parts += [f"{number} {one if number == 1 else many}" for number, one, many in others if number]
    return f"Plan: {', '.join(parts)}."
