"""Maps events of known shapes by columns: all that have one layout together. Others are mapped one by one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from headwater.events.avro import DecodeError
from headwater.events.avro.column_reader import Rows
from headwater.events.avro.raw_reader import LATEST
from headwater.lineage.mapping.column_layout import TEXT
from headwater.lineage.mapping.column_rows import EventColumns, FactRenderer, listed
from headwater.lineage.mapping.event_templates import EventTemplate, EventTemplates, LaidOutTemplate
from headwater.lineage.mapping.row_builder import MAX_CLOCK_AHEAD, make_stamp
from headwater.lineage.mapping.slot_columns import SlotColumns, SlotReader

if TYPE_CHECKING:
    from headwater.lineage.mapping.batch_mapper import BatchMapper

_GREATEST: Final = 2**63 - 1


class ColumnMapper:
    """Maps the events of one kind."""

    def __init__(self, templates: EventTemplates, kind: str, mapper: BatchMapper) -> None:
        """Rows go to `mapper`, which also maps the first event of each shape."""
        self._templates = templates
        self._mapper = mapper
        self._reader = SlotReader(kind, templates.cache.varying, templates.cache.fields)

    def map(self, events: Sequence[bytes], append_times: Sequence[int | None]) -> list[int]:
        """Map what has a known shape, or gets one. Return the numbers of all other events."""
        slots, constants = self._reader.read(events)
        known = self._templates.by_constants
        found = [None if each is None else known.get(each) for each in constants]
        left: list[int] = []
        unknown: defaultdict[bytes, list[int]] = defaultdict(list)
        for number, (shape, data) in enumerate(zip(found, constants, strict=True)):
            if data is None:
                left.append(number)
            elif shape is None:
                unknown[data].append(number)
        for data, numbers in unknown.items():
            left += self._learn(data, numbers, events, append_times, found)
        latest = np.array([_latest(each) for each in append_times], np.int64)
        by_layout: defaultdict[int, list[int]] = defaultdict(list)
        for number, shape in enumerate(found):
            if shape is not None:
                by_layout[id(shape.layout)].append(number)
        for numbers in by_layout.values():
            shapes = [shape for shape in (found[each] for each in numbers) if shape is not None]
            left += self._map_alike(shapes, np.array(numbers), slots, latest)
        self._templates.count_known(len(events) - len(left))
        return sorted(left)

    def _learn(
        self,
        data: bytes,
        numbers: list[int],
        events: Sequence[bytes],
        append_times: Sequence[int | None],
        found: list[LaidOutTemplate | None],
    ) -> list[int]:
        """Find the template of events with the same constants, by mapping the first one if need be. Return those that
        are left."""
        first, left = numbers[0], numbers
        match = self._templates.cache.match(events[first])
        if match is None:
            try:
                if self._mapper.add(events[first], append_times[first]) is not None:
                    return numbers
            except DecodeError:
                return numbers
            left = numbers[1:]
            match = self._templates.cache.match(events[first])
        if match is None:
            return left
        shape = self._templates.remember(data, match.value)
        for each in left:
            found[each] = shape
        return []

    def _map_alike(self, shapes: Sequence[LaidOutTemplate], rows: Rows, slots: SlotColumns, latest: Rows) -> list[int]:
        layout, templates = shapes[0].layout, [each.template for each in shapes]
        moments = slots.numbers(layout.slots[layout.stamped[3]].path, rows)
        is_plain = (moments >= 0) & (moments < LATEST)
        for slot in layout.counts:
            is_plain &= slots.numbers(layout.slots[slot].path, rows) >= 0
        for path, width in layout.slots:
            if width == TEXT:
                is_plain &= slots.are_texts(path, rows)
        left = listed(rows[~is_plain])
        if left:
            templates = [templates[each] for each in np.flatnonzero(is_plain).tolist()]
            rows, moments = rows[is_plain], moments[is_plain]
            if not templates:
                return left
        columns = EventColumns(layout, slots, rows, np.minimum(moments, latest[rows]))
        distinct = list({id(each): each for each in templates}.values())
        number_of = {id(each): number for number, each in enumerate(distinct)}
        chosen = np.array([number_of[id(each)] for each in templates])
        for kind, block in FactRenderer(columns, distinct, chosen).blocks():
            self._mapper.copied_rows.blocks[kind].append(block)
        self._repeat(columns, distinct, chosen)
        self._arrive(columns)
        if any(each.others for each in distinct):
            self._add_others(columns, templates)
        return left

    def _repeat(self, columns: EventColumns, templates: Sequence[EventTemplate], chosen: Rows) -> None:
        """Record which repeated rows were written first and last."""
        layout = columns.layout
        producer, sequence, _, _ = layout.stamped
        stamped = columns.matrix(producer).view(">u8")
        order = np.lexsort((columns.numbers(sequence), stamped[:, 1], stamped[:, 0], columns.times)).tolist()
        runs = list(zip(*map(columns.values, layout.run_key), strict=True)) or [()] * len(columns)
        keys = list(zip(chosen.tolist(), runs, strict=True))
        last = {keys[each]: each for each in order}
        order.reverse()
        first = {keys[each]: each for each in order}
        for key, each in last.items():
            template, run = templates[key[0]], key[1]
            repeated = template.known_repeated(run)
            if repeated is None:
                environment = [columns.values(place)[each] for place in range(layout.first_id)]
                repeated = self._mapper.build_repeated(template, run, environment)
            for at in {each, first[key]}:
                time = columns.values(layout.time)[at]
                stamp = make_stamp(time, columns.values(producer)[at], columns.values(sequence)[at])
                self._mapper.repeats.record(repeated, time, stamp)

    def _arrive(self, columns: EventColumns) -> None:
        layout = columns.layout
        producer, _, number, _ = layout.stamped
        for each in zip(columns.values(producer), columns.values(number), columns.values(layout.time), strict=True):
            self._mapper.arrive(each[0], layout.family, each[1], each[2])

    def _add_others(self, columns: EventColumns, templates: Sequence[EventTemplate]) -> None:
        places = range(columns.layout.first_id + len(columns.layout.facts))
        environments = map(list, zip(*map(columns.values, places), strict=True))
        for template, environment in zip(templates, environments, strict=True):
            for each in template.others:
                self._mapper.merge(each.row(environment))


def _latest(append_time: int | None) -> int:
    return _GREATEST if append_time is None else min(append_time + MAX_CLOCK_AHEAD, _GREATEST)
