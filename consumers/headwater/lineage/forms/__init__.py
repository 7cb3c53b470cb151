"""Answers about lineage in the forms that people and programs take them.

picture   nodes and lines of any answer: what the others draw
tree      text, as a tree
json      a documented, stable form: docs/questions.md
dot       for Graphviz
mermaid   for Markdown
html      a page of its own, with a picture
graph     a networkx.DiGraph (extra `graph`)
"""

from headwater.lineage.forms.dot import as_dot
from headwater.lineage.forms.graph import as_graph
from headwater.lineage.forms.html import as_html
from headwater.lineage.forms.json import as_json
from headwater.lineage.forms.mermaid import as_mermaid
from headwater.lineage.forms.picture import Line, Node, Picture, picture_of
from headwater.lineage.forms.tree import as_text

__all__ = [
    "Line",
    "Node",
    "Picture",
    "as_dot",
    "as_graph",
    "as_html",
    "as_json",
    "as_mermaid",
    "as_text",
    "picture_of",
]
