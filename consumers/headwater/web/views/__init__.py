"""What each page asks, and the command that gives the same.

A view is a query (what its address may say), a content (what the page shows, and what JSON has) and the function that
asks the store for it. Numbers of snapshots are texts in a content: JavaScript has no integers of 64 bits.
"""

from typing import Final

from headwater.web.views.base import View
from headwater.web.views.graph import GRAPH
from headwater.web.views.search import SEARCH

VIEWS: Final[tuple[View, ...]] = (SEARCH, GRAPH)
"""All pages, in the order of the menu."""

__all__ = ["VIEWS", "View"]
