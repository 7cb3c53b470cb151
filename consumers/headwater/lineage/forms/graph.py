"""An answer as a graph of networkx, for whoever wants to go on computing with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.errors import PluginError
from headwater.lineage.forms.picture import picture_of
from headwater.lineage.questions.versions import Lineage

if TYPE_CHECKING:
    from networkx import MultiDiGraph


def as_graph(answer: Lineage[Any]) -> MultiDiGraph[Any]:
    """Nodes are the labels that people know; edges go the way of the data, from the source to the target."""
    try:
        import networkx as nx  # noqa: PLC0415 - an extra
    except ImportError:
        raise PluginError("networkx isn't installed: pip install 'headwater[graph]'") from None
    picture = picture_of(answer)
    graph: MultiDiGraph[Any] = nx.MultiDiGraph(of=answer.of, direction=answer.direction)
    for identity, node in picture.nodes.items():
        graph.add_node(node.label, note=node.note, is_root=identity in picture.roots)
    for line in picture.lines.values():
        ends = (picture.nodes[line.source].label, picture.nodes[line.target].label)
        graph.add_edge(*ends, label=line.label, in_cycle=line.in_cycle, is_direct=line.is_direct)
    return graph
