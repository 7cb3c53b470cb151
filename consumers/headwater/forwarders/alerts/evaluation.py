"""Events become alerts: each once, not older than wanted, and no more at once than a rule allows."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from headwater.events import Event
from headwater.events.catalog import AlterTable, DropTable
from headwater.events.changes import RenameTable
from headwater.events.jobs import Committed, JobLineage
from headwater.forwarders.alerts.columns import affected, alteration_of, reads_of
from headwater.forwarders.alerts.conditions import (
    RuleFinding,
    commits_of,
    duration_text,
    findings_of,
    moment_text,
)
from headwater.forwarders.alerts.memory import RuleMemory, WatchedTable
from headwater.forwarders.alerts.rule_file import RuleFile, SlackOptions
from headwater.forwarders.alerts.rules import ColumnChangedRule, Rule, TableLateRule, escaped_for_slack, plain, render
from headwater.forwarders.alerts.store import AlertStore

_LOG: Final = logging.getLogger(__name__)


class AlertEvaluator:
    """Applies the rules to events and to the time. It writes within the transaction that its caller opened."""

    def __init__(self, file: RuleFile, store: AlertStore, max_age: float) -> None:
        self._rules = file.rules
        self._late = [rule for rule in file.rules if isinstance(rule, TableLateRule)]
        self._columns = [rule for rule in file.rules if isinstance(rule, ColumnChangedRule)]
        self._destinations = file.destinations
        self._store = store
        self._memory = RuleMemory(store)
        self._max_age = max_age

    def take(self, event: Event, happened: float, now: float) -> None:
        """Record what an event says, and raise what rules find in it."""
        for finding in self.findings(event, happened):
            self._raise(finding, now)

    def findings(self, event: Event, happened: float) -> Iterator[RuleFinding]:
        """Yield what rules find in an event, with what they remember of others."""
        for rule in self._rules:
            yield from findings_of(event, rule, happened)
        if self._columns:
            yield from self._column_findings(event, happened)
        for late in self._late:
            self._watch(event, happened, late)

    def _column_findings(self, event: Event, happened: float) -> Iterator[RuleFinding]:
        """A change and the lineage that it concerns may come in either order: their keys differ on the bus."""
        altered = alteration_of(event, happened)
        if altered is not None:
            self._memory.record_alteration(altered)
            for rule in self._columns:
                yield from affected(rule, altered, self._memory.reads_of(altered))
        if isinstance(event, JobLineage):
            for read in reads_of(event, happened):
                self._memory.record_read(read)
                for earlier in self._memory.alterations_of(read):
                    for rule in self._columns:
                        yield from affected(rule, earlier, self._memory.reads_of(earlier))

    def _watch(self, event: Event, happened: float, rule: TableLateRule) -> None:
        if isinstance(event, Committed):
            for commit in commits_of(event):
                if rule.table_patterns.match(commit.names):
                    self._memory.record_commit(rule.name, commit.table, commit.names, happened)
        elif isinstance(event, DropTable) or (isinstance(event, AlterTable) and _renames(event)):
            self._unwatch(rule, event, happened)

    def _unwatch(self, rule: TableLateRule, event: AlterTable | DropTable, happened: float) -> None:
        """A table that isn't there any more isn't late; one that was made anew since is."""
        gone = {str(event.identifier), str(event.dataset)}
        for table in self._memory.tables(rule.name):
            if table.name in gone and table.has_commit and table.last <= happened:
                self._memory.unwatch(rule.name, table.name)

    def take_time(self, caught_up_at: float | None, now: float) -> None:
        """Raise what has become late, if the bus confirms it, and sum up what was held back."""
        if caught_up_at is not None:
            for rule in self._late:
                self._judge_tables(rule, caught_up_at, now)
        for each in self._rules:
            self._sum_up(each, now)

    def _judge_tables(self, rule: TableLateRule, at: float, now: float) -> None:
        """`at` is a moment up to which every commit that reached the bus is known."""
        self._expect(rule, at)
        self._memory.record_on_time(rule.name, at - rule.every)
        for table in self._memory.late_tables(rule.name, at - rule.every):
            self._memory.record_late(rule.name, table)
            finding = _lateness(rule, table, at)
            if table.was_on_time or not self._is_old(finding, now):
                self._raise(finding, now, is_current=True)

    def _expect(self, rule: TableLateRule, at: float) -> None:
        """Watch tables that the rule names, also those that no commit was seen of."""
        if not rule.exact_names:
            return
        tables = self._memory.tables(rule.name)
        for name in rule.exact_names:
            known = [table for table in tables if name in table.names]
            if not known:
                self._memory.watch(rule.name, name, at)
            elif any(each.has_commit for each in known):
                for each in known:
                    if not each.has_commit:
                        self._memory.unwatch(rule.name, each.name)

    def _is_old(self, finding: RuleFinding, now: float) -> bool:
        return finding.happened < now - self._max_age

    def _raise(self, finding: RuleFinding, now: float, *, is_current: bool = False) -> None:
        """Put an alert into the outbox, unless there was one already, it is old, or its rule has sent enough."""
        rule = finding.rule
        if not self._store.add_raised(finding.alert_id, finding.happened):
            return
        if self._is_old(finding, now) and not is_current:
            _LOG.debug("%s: an alert of %s is too old to be sent", rule.name, moment_text(finding.happened))
            return
        window = self._store.window(rule.name)
        if window is None or (now - window[0] >= rule.per and self._store.held(rule.name) is None):
            window = (now, 0)
        began, sent = window
        if sent >= rule.limit or now - began >= rule.per:
            self._store.hold(rule.name, plain(finding.subject, 200), finding.happened)
            return
        self._store.put_window(rule.name, began, sent + 1)
        self._send(rule, alert_of(finding), finding.values, rule.template, now)

    def prune(self, *, alterations: float, reads: float, tables: float) -> None:
        """Forget what was remembered before these moments."""
        self._memory.prune(alterations=alterations, reads=reads, tables=tables)

    def _sum_up(self, rule: Rule, now: float) -> None:
        """When the time of a limit is over, send one alert for all that were held back."""
        window, held = self._store.window(rule.name), self._store.held(rule.name)
        if window is None or held is None or now - window[0] < rule.per:
            return
        self._store.forget_held(rule.name)
        values = {
            "count": str(held.count),
            "first": moment_text(held.first),
            "last": moment_text(held.last),
            "subjects": ", ".join(held.subjects),
        }
        finding = RuleFinding(rule, f"summary/{window[0]}", held.last, values["subjects"], values)
        self._store.put_window(rule.name, now, 0)
        template = "{count} more alerts of this rule, from {first} to {last}: {subjects}"
        self._send(rule, {**alert_of(finding, template), "count": held.count}, values, template, now)

    def _send(self, rule: Rule, alert: Mapping[str, Any], values: Mapping[str, str], template: str, now: float) -> None:
        common = _common_values(rule, alert["time"])
        for name in dict.fromkeys(rule.to):
            body: Mapping[str, Any] = alert
            if isinstance(self._destinations[name], SlackOptions):
                text = render(template, {**common, **values}, escaped_for_slack)
                body = {"text": f"*[{rule.severity}] {escaped_for_slack(plain(rule.name))}*\n{text}"}
            self._store.add_message(name, json.dumps(body), now)


def alert_of(finding: RuleFinding, template: str | None = None) -> dict[str, Any]:
    """Return the alert that a finding is, as webhooks and commands get it."""
    rule = finding.rule
    time = moment_text(finding.happened)
    values = {name: plain(value) for name, value in finding.values.items()}
    return {
        "id": finding.alert_id,
        "rule": rule.name,
        "when": rule.when,
        "severity": rule.severity,
        "time": time,
        "text": render(template or rule.template, {**_common_values(rule, time), **finding.values}),
        "count": 1,
        "event": finding.event,
        "values": values,
    }


def _common_values(rule: Rule, time: str) -> dict[str, str]:
    return {"rule": rule.name, "severity": rule.severity, "time": time}


def _lateness(rule: TableLateRule, table: WatchedTable, at: float) -> RuleFinding:
    since = table.last + rule.every
    values = {
        "table": table.name,
        "last": moment_text(table.last) if table.has_commit else f"before {moment_text(table.last)}, if there is one",
        "late_by": duration_text(at - since),
        "every": duration_text(rule.every),
    }
    return RuleFinding(rule, f"late/{table.name}/{table.last}", since, table.name, values)


def _renames(event: AlterTable) -> bool:
    return any(isinstance(change, RenameTable) for change in event.changes)


def rules_by_kind(rules: Iterable[Rule]) -> str:
    """Return how many rules there are of each kind, in words."""
    kinds = [rule.when for rule in rules]
    return ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
