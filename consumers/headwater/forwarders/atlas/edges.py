"""Column lineage as Atlas has it: a process for each column that a job makes, from the columns that it is made from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from headwater.events.column_lineage import ColumnLineage
from headwater.forwarders.atlas.changes import EventChanges, column_text
from headwater.forwarders.atlas.entities import AtlasRef, References, WriteRule
from headwater.forwarders.atlas.names import AtlasDataset

MAX_DERIVATION: Final = 500
"""So many characters of an expression are sent with an edge."""


def put_column_lineage(
    changes: EventChanges,
    job: AtlasRef,
    inputs: Sequence[AtlasDataset | None],
    outputs: Sequence[AtlasDataset | None],
    edges: Sequence[ColumnLineage],
    *,
    is_whole: bool = False,
) -> tuple[AtlasRef, ...]:
    """Write the edges between columns, and return their processes.

    An edge without a target is left out, and so is one whose source or target has no entity. If the edges are all that
    there are (`is_whole`), they take the place of those that Atlas has.
    """
    sources: dict[AtlasRef, dict[AtlasRef, None]] = defaultdict(dict)
    derivations: dict[AtlasRef, dict[str, None]] = defaultdict(dict)
    names: dict[AtlasRef, str] = {}
    for edge in edges:
        origin = inputs[edge.input] if edge.input < len(inputs) else None
        sink = outputs[edge.output] if edge.output < len(outputs) else None
        if origin is None or sink is None or edge.target is None:
            continue
        source, target = origin.column(edge.source), sink.column(edge.target)
        if source is not None and target is not None:
            sources[target][source] = None
            derivations[target][_derivation(origin, edge)] = None
            names[target] = edge.target[0]
    processes: list[AtlasRef] = []
    for target, found in sources.items():
        process = changes.namer.column_lineage(job, target)
        references: dict[str, References] = {"job": job, "inputs": tuple(found), "outputs": (target,)}
        rule = WriteRule.SET if is_whole else WriteRule.ADD
        changes.put(process, names[target], {"derivations": sorted(derivations[target])}, references, rule=rule)
        processes.append(process)
    return tuple(processes)


def _derivation(origin: AtlasDataset, edge: ColumnLineage) -> str:
    """Return how a column comes into another, in words: orders.amount: AGGREGATION: sum(amount)."""
    text = edge.derivation.value if edge.expression is None else f"{edge.derivation.value}: {edge.expression}"
    return f"{origin.name}.{column_text(edge.source)}: {text}"[:MAX_DERIVATION]
