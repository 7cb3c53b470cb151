"""What each page asks, and the command that gives the same.

base       what all pages have in common
commands   pages of what commands of the command line give
graph      what is around a table
searching  where a reader begins
snapshots  one snapshot, and two side by side
tables     a table at one look
"""

from typing import Final

from headwater.web.views.base import Given, Parameter, View
from headwater.web.views.commands import COMMAND_VIEWS
from headwater.web.views.graph import GRAPH
from headwater.web.views.searching import SEARCH
from headwater.web.views.snapshots import COMPARE, SNAPSHOT
from headwater.web.views.tables import TABLE

VIEWS: Final[tuple[View, ...]] = (SEARCH, TABLE, GRAPH, SNAPSHOT, COMPARE, *COMMAND_VIEWS)
"""All pages."""

__all__ = ["VIEWS", "Given", "Parameter", "View"]
