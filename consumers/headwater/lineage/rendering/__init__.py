"""Renders answers about lineage for people and programs.

lineage_graph  the nodes and edges of any answer, and as a networkx graph
tree           text, as a tree
graph_formats  for Graphviz, for Markdown (Mermaid), and as JSON: docs/questions.md
html           a page with a picture
"""

from headwater.lineage.rendering.graph_formats import as_dot, as_json, as_mermaid
from headwater.lineage.rendering.html import as_html
from headwater.lineage.rendering.lineage_graph import GraphEdge, GraphNode, LineageGraph, as_graph, build_graph
from headwater.lineage.rendering.tree import as_text

__all__ = [
    "GraphEdge",
    "GraphNode",
    "LineageGraph",
    "as_dot",
    "as_graph",
    "as_html",
    "as_json",
    "as_mermaid",
    "as_text",
    "build_graph",
]
