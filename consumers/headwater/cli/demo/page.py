"""The demo's page: what the store says of it, chapter by chapter."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.cli.demo import facts
from headwater.cli.demo.correction import WRONG_PRODUCT, Corrected
from headwater.cli.demo.facts import PRICE, Results, snapshot_of, versions_in
from headwater.cli.demo.scenario import ORDERS, QUESTIONS, REVENUE, STEPS, TABLES, TOP10
from headwater.cli.demo.workspace import Workspace
from headwater.cli.output import shown
from headwater.events.presentation.phrases import seconds_of
from headwater.lineage.questions.runs import Run
from headwater.lineage.rendering.html import Chapter, Mark, Marks, Markup, Page, Tile, graph
from headwater.lineage.rendering.html.page import badge, callout, code, command, concatenate, moment, table
from headwater.lineage.rendering.lineage_graph import source_label
from headwater.lineage.rendering.tree import limit_text


def page_of(results: Results, workspace: Workspace, corrected: Corrected | None) -> Page:
    runs = len(STEPS) + len(QUESTIONS) + (corrected is not None)
    words = (
        f"A small warehouse on Spark and Iceberg, {runs} runs of plain PySpark scripts that know nothing of "
        "headwater. All of this was read from the lineage store that their events are kept in."
    )
    return Page(
        "Where does top10 come from?",
        words,
        [
            _tables(results),
            _snapshots(results),
            _price(results),
            _failure(results),
            _changes(results),
            *([] if corrected is None else [_correction(results, corrected)]),
            _completeness(results),
            _next(workspace),
        ],
        list(_tiles(results, corrected)),
        f"Made by headwater demo in {workspace.place}.",
    )


def _tiles(results: Results, corrected: Corrected | None) -> Iterator[Tile]:
    more = "they fit" if results.together.is_consistent else "the two don't fit"
    in_it, beside = (len(versions_in(each, ORDERS)) for each in (results.top10, results.revenue))
    mood = "good" if results.together.is_consistent else "bad"
    beside_it = f"revenue_today holds {beside}: {more}"
    yield Tile("top10 holds", f"{facts.count(in_it, 'commit')} of orders", beside_it, "snapshots", mood)
    columns, tables, jobs = facts.reach_of_price(results)
    reach = f"in {facts.count(tables, 'table')}, by {' and '.join(jobs)}"
    yield Tile("A change of orders.price breaks", facts.count(columns, "column"), reach, "price")
    left = ", ".join(facts.name(sink.table) for sink in results.left_out())
    yield Tile("The newest run of", f"{results.failed.job} failed", f"{left} was left as it was", "failure", "bad")
    if corrected is not None:
        seen = f"{corrected.queries} queries of another process saw {corrected.mixtures} mixtures"
        yield Tile("Then a wrong price was", f"corrected in {len(corrected.tables)} tables", seen, "correction", "good")
        if not results.gaps.rows:
            return  # the chapter says up to when
    until = f"{results.complete_until:%H:%M:%S} UTC" if results.complete_until else "not known"
    gaps = "and nothing is known to be missing" if not results.gaps.rows else facts.count(len(results.gaps), "gap")
    yield Tile("All of this is complete until", until, gaps, "complete", "good" if not results.gaps.rows else "bad")


def _tables(results: Results) -> Chapter:
    jobs = {run.job: Mark("stream") for run in results.runs if run.job and run.job_type == "STREAMING"}
    jobs |= {
        facts.job_of(sink.job): Mark("✕ its last run failed", is_bad=True) for sink in results.left_out() if sink.job
    }
    left = {sink.table: Mark("not written by the last run", is_bad=True) for sink in results.left_out()}
    return Chapter(
        "tables",
        "The tables, and the jobs that make them",
        "Nobody drew this: each commit said what it read and what it made. Point at a table or a job to see its path.",
        (
            graph(
                [facts.by_jobs(each) for each in results.tables],
                "t",
                Marks(jobs=jobs, tables=left, is_box_whole_job=True),
            ),
        ),
    )


def _snapshots(results: Results) -> Chapter:
    states, meaning = facts.together(results)
    mood = "" if results.together.is_consistent else "bad"
    picture = graph((results.top10, results.revenue), "s", Marks(rows=_versions_left_out(results)))
    newest = facts.at(TOP10, snapshot_of(results.top10))
    words = (
        f"Which version of each table is in {newest}, from the first commit on; and what went into "
        f"{facts.name(REVENUE)} beside it. A snapshot is shown by the end of its number."
    )
    return Chapter(
        "snapshots",
        f"Which snapshots {newest} was made from",
        words,
        (callout(states, meaning, facts.shares(results), mood=mood), picture, _ids(results)),
    )


def _versions_left_out(results: Results) -> dict[str, Mark]:
    """Labels of all versions that revenue_today has and top10 hasn't."""
    known, beside = (
        {label for edge in answer for label in (edge.target.label, source_label(edge))}
        for answer in (results.top10, results.revenue)
    )
    more = {label for label in beside - known if not label.startswith(f"{REVENUE}@")}
    return dict.fromkeys(more, Mark("not in top10", is_bad=True))


def _ids(results: Results) -> Markup:
    """Return the numbers in full, as they stand in the tables' own metadata."""
    edges = {(edge.target.label, source_label(edge)): edge for edge in (*results.top10, *results.revenue)}
    rows = [
        (moment(seconds_of(edge.at)), code(target), f"{edge.kind} by {edge.job}", code(source))
        for (target, source), edge in sorted(edges.items(), key=lambda each: (each[1].at, each[0]))
    ]
    listing = table(("Committed", "Snapshot", "How", "Made from"), rows)
    return concatenate(Markup("<details><summary>All numbers in full</summary>"), listing, Markup("</details>"))


def _price(results: Results) -> Chapter:
    columns, tables, jobs = facts.reach_of_price(results)
    words = (
        f"{facts.count(columns, 'column')} in {facts.count(tables, 'table')} are computed from it, by "
        f"{' and '.join(jobs)}. It can be asked before somebody changes the column."
    )
    rows = [
        (code(edge.target.label), edge.derivation.lower(), code(edge.source.label), ", ".join(edge.jobs))
        for edge in results.price
    ]
    listing = table(("This column", "is a", "of", "by the job"), rows)
    return Chapter(
        "price", f"What a change of {PRICE.partition('.')[2]} breaks", words, (graph(results.price, "c"), listing)
    )


def _failure(results: Results) -> Chapter:
    error, left = facts.failure(results)
    said: list[str] = [
        concatenate(Markup("<strong>"), str(results.failed.job), Markup("</strong>: "), code(error)),
        left,
    ]
    before = facts.change_before(results)
    if before is not None:
        changed, change = before
        when = seconds_of(change.at) if change.at else "before"
        said.append(concatenate(f"What had changed: {when}, ", code(changed), f", {', '.join(change.changes)}."))
    columns = ("Started", "Job", "Kind", "Took", "Ended")
    listing = table(columns, [_run(run) for run in reversed(results.runs.rows)])
    words = "The error comes from the driver, which removed the secrets."
    return Chapter("failure", "The job that failed, and why", words, (callout(*said, mood="bad"), listing))


def _run(run: Run) -> tuple[object, ...]:
    mood = {"FAILED": "bad", "FINISHED": "good"}.get(run.status.value, "")
    kind = (run.job_type or "").lower() or None
    return (moment(shown(run.started)), run.job, kind, shown(run.duration), badge(run.status.value, mood))


def _changes(results: Results) -> Chapter:
    rows = [
        (moment(seconds_of(change.at) if change.at else None), code(name), change.kind, ", ".join(change.changes))
        for name in TABLES
        for change in results.histories[name]
    ]
    words = "Every change of a definition, with the columns before and after it: which snapshot has which can be asked."
    return Chapter("changes", "What was done to the tables", words, (table(("When", "Table", "What", "Change"), rows),))


def _correction(results: Results, corrected: Corrected) -> Chapter:
    wrong, done, seen = facts.correction_words(corrected)
    rows = [
        tuple(
            concatenate(Markup("<strong>"), cell, Markup("</strong>")) if row[0] == WRONG_PRODUCT else cell
            for cell in row
        )
        for row in facts.sold_rows(corrected)
    ]
    listing = table(("top10", "Sold before", "Revenue before", "Sold after", "Revenue after"), rows)
    commands = [
        concatenate(Markup("<h3>"), why, Markup("</h3>"), command(how))
        for why, how in facts.correction_commands(corrected, facts.wrong_orders(results))
    ]
    how = concatenate(Markup("<details><summary>The commands that do this</summary>"), *commands, Markup("</details>"))
    words = "This came last: all that stands above is from before."
    return Chapter("correction", "A wrong price, corrected", words, (callout(wrong, done, seen), listing, how))


def _completeness(results: Results) -> Chapter:
    until = seconds_of(results.complete_until) if results.complete_until else "nothing is known of that"
    rows = [(gap.reason or gap.cause.value, gap.detail, gap.dataset, gap.job) for gap in results.gaps]
    lacks = [concatenate(Markup("<li>"), limit_text(limit), Markup("</li>")) for limit in facts.limits_of(results)]
    missing = concatenate(Markup('<p>Answers may lack:</p><ul class="limits">'), *lacks, Markup("</ul>"))
    parts = [
        callout(
            concatenate(
                "All that was committed until ", Markup("<strong>"), until, Markup("</strong> is in the store.")
            )
        ),
        table(("Gap", "Detail", "Table", "Job"), rows) if rows else Markup("<p>Gaps: none.</p>"),
        missing if lacks else Markup(),
    ]
    words = (
        "Each event has a number, so one that is missing shows. Had a driver been killed, a number been lost or a "
        "writer without headwater come between, it would stand here."
    )
    return Chapter("complete", "Up to when this is complete", words, tuple(parts))


def _next(workspace: Workspace) -> Chapter:
    parts = tuple(
        concatenate(Markup("<h3>"), why, Markup("</h3>"), command(how)) for why, how in facts.commands(workspace.store)
    )
    return Chapter("next", "Commands to try next", "They ask the store that this page was made from.", parts)
