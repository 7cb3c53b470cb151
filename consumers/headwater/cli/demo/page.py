"""The demo's page: what the store says of it, chapter by chapter."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.cli.asking.giving import span_text, time_text
from headwater.cli.demo import facts
from headwater.cli.demo.stage import Stage
from headwater.cli.demo.story import ACTS, ORDERS, REVENUE, TABLES, TOP10
from headwater.cli.demo.told import PRICE, Told, snapshot_of, versions_in
from headwater.events.presentation.words import seconds_of
from headwater.lineage.forms.html import Chapter, Mark, Marks, Markup, Page, Tile, graph
from headwater.lineage.forms.html.page import badge, callout, code, command, joined, moment, table
from headwater.lineage.forms.picture import source_label
from headwater.lineage.forms.tree import limit_text
from headwater.lineage.questions.runs import Run


def page_of(told: Told, stage: Stage) -> Page:
    words = (
        f"A small warehouse on Spark and Iceberg, {len(ACTS)} runs of plain PySpark scripts that know nothing of "
        "headwater. All of this was read from the lineage store that their events are kept in."
    )
    return Page(
        "Where does top10 come from?",
        words,
        [
            _tables(told),
            _snapshots(told),
            _price(told),
            _failure(told),
            _changes(told),
            _completeness(told),
            _next(stage),
        ],
        list(_tiles(told)),
        f"Made by headwater demo in {stage.place}.",
    )


def _tiles(told: Told) -> Iterator[Tile]:
    more = "they fit" if facts.belongs_together(told) else "the two don't fit"
    in_it, beside = (len(versions_in(each, ORDERS)) for each in (told.top10, told.revenue))
    mood = "good" if facts.belongs_together(told) else "bad"
    beside_it = f"revenue_today holds {beside}: {more}"
    yield Tile("top10 holds", f"{facts.count(in_it, 'commit')} of orders", beside_it, "snapshots", mood)
    columns, tables, jobs = facts.reach_of_price(told)
    reach = f"in {facts.count(tables, 'table')}, by {' and '.join(jobs)}"
    yield Tile("A change of orders.price breaks", facts.count(columns, "column"), reach, "price")
    left = ", ".join(facts.name(each.table) for each in told.left_out())
    yield Tile("The newest run of", f"{told.failed.job} failed", f"{left} was left as it was", "failure", "bad")
    until = f"{told.complete_until:%H:%M:%S} UTC" if told.complete_until else "not known"
    gaps = "and nothing is known to be missing" if not told.gaps.rows else facts.count(len(told.gaps), "gap")
    yield Tile("All of this is complete until", until, gaps, "complete", "good" if not told.gaps.rows else "bad")


def _tables(told: Told) -> Chapter:
    jobs = {run.job: Mark("stream") for run in told.runs if run.job and run.job_type == "STREAMING"}
    jobs |= {each.job: Mark("✕ its last run failed", is_bad=True) for each in told.left_out() if each.job}
    left = {each.table: Mark("not written by the last run", is_bad=True) for each in told.left_out()}
    return Chapter(
        "tables",
        "The tables, and the jobs that make them",
        "Nobody drew this: each commit said what it read and what it made. Point at a table or a job to see its path.",
        (graph(told.tables, "t", Marks(jobs=jobs, tables=left)),),
    )


def _snapshots(told: Told) -> Chapter:
    states, meaning = facts.together(told)
    mood = "" if facts.belongs_together(told) else "bad"
    picture = graph((told.top10, told.revenue), "s", Marks(rows=_beside(told)))
    newest = facts.at(TOP10, snapshot_of(told.top10))
    words = (
        f"Which version of each table is in {newest}, from the first commit on; and what went into "
        f"{facts.name(REVENUE)} beside it. A snapshot is shown by the end of its number."
    )
    return Chapter(
        "snapshots",
        f"Which snapshots {newest} was made from",
        words,
        (callout(states, meaning, mood=mood), picture, _ids(told)),
    )


def _beside(told: Told) -> dict[str, Mark]:
    """Labels of all versions that revenue_today has and top10 hasn't."""
    known, beside = (
        {label for edge in answer for label in (edge.target.label, source_label(edge))}
        for answer in (told.top10, told.revenue)
    )
    more = {label for label in beside - known if not label.startswith(f"{REVENUE}@")}
    return dict.fromkeys(more, Mark("not in top10", is_bad=True))


def _ids(told: Told) -> Markup:
    """The numbers in full, to be looked up in the tables' own metadata."""
    edges = {(edge.target.label, source_label(edge)): edge for edge in (*told.top10, *told.revenue)}
    rows = [
        (moment(seconds_of(edge.at)), code(target), f"{edge.kind} by {edge.job}", code(source))
        for (target, source), edge in sorted(edges.items(), key=lambda each: (each[1].at, each[0]))
    ]
    listing = table(("Committed", "Snapshot", "How", "Made from"), rows)
    return joined(Markup("<details><summary>All numbers in full</summary>"), listing, Markup("</details>"))


def _price(told: Told) -> Chapter:
    columns, tables, jobs = facts.reach_of_price(told)
    words = (
        f"{facts.count(columns, 'column')} in {facts.count(tables, 'table')} are computed from it, by "
        f"{' and '.join(jobs)}. It can be asked before somebody changes the column."
    )
    rows = [
        (code(edge.target.label), edge.derivation.lower(), code(edge.source.label), ", ".join(edge.jobs))
        for edge in told.price
    ]
    listing = table(("This column", "is a", "of", "by the job"), rows)
    return Chapter(
        "price", f"What a change of {PRICE.partition('.')[2]} breaks", words, (graph(told.price, "c"), listing)
    )


def _failure(told: Told) -> Chapter:
    error, left = facts.failure(told)
    said: list[str] = [joined(Markup("<strong>"), str(told.failed.job), Markup("</strong>: "), code(error)), left]
    before = facts.change_before(told)
    if before is not None:
        changed, change = before
        when = seconds_of(change.at) if change.at else "before"
        said.append(joined(f"What had changed: {when}, ", code(changed), f", {', '.join(change.changes)}."))
    columns = ("Started", "Job", "Kind", "Took", "Ended")
    listing = table(columns, [_run(run) for run in reversed(told.runs.rows)])
    words = "The error comes from the driver, with secrets removed before it left it."
    return Chapter("failure", "The job that failed, and why", words, (callout(*said, mood="bad"), listing))


def _run(run: Run) -> tuple[object, ...]:
    mood = {"FAILED": "bad", "FINISHED": "good"}.get(run.status.value, "")
    kind = (run.job_type or "").lower() or None
    return (moment(time_text(run.started)), run.job, kind, span_text(run.duration), badge(run.status.value, mood))


def _changes(told: Told) -> Chapter:
    rows = [
        (moment(seconds_of(each.at) if each.at else None), code(name), each.kind, ", ".join(each.changes))
        for name in TABLES
        for each in told.histories[name]
    ]
    words = "Every change of a definition, with the columns before and after it: which snapshot has which can be asked."
    return Chapter("changes", "What was done to the tables", words, (table(("When", "Table", "What", "Change"), rows),))


def _completeness(told: Told) -> Chapter:
    until = seconds_of(told.complete_until) if told.complete_until else "nothing is known of that"
    rows = [(each.reason or each.cause.value, each.detail, each.dataset, each.job) for each in told.gaps]
    lacks = [joined(Markup("<li>"), limit_text(each), Markup("</li>")) for each in facts.limits_of(told)]
    missing = joined(Markup('<p>Answers may lack:</p><ul class="limits">'), *lacks, Markup("</ul>"))
    parts = [
        callout(
            joined("All that was committed until ", Markup("<strong>"), until, Markup("</strong> is in the store."))
        ),
        table(("Gap", "Detail", "Table", "Job"), rows) if rows else Markup("<p>Gaps: none.</p>"),
        missing if lacks else Markup(),
    ]
    words = (
        "Each event has a number, so one that is missing shows. Had a driver been killed, a number been lost or a "
        "writer without headwater come between, it would stand here."
    )
    return Chapter("complete", "Up to when this is complete", words, tuple(parts))


def _next(stage: Stage) -> Chapter:
    parts = tuple(
        joined(Markup("<h3>"), why, Markup("</h3>"), command(how)) for why, how in facts.commands(stage.store)
    )
    return Chapter("next", "Three commands to try next", "They ask the store that this page was made from.", parts)
