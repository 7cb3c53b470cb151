"""Objects that must begin anew in a forked child: a lock may be held there by a thread that no longer exists."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Forkable(Protocol):
    """Something with locks, or with an identity that two processes must not share."""

    def begin_in_child(self) -> None:
        """Called in a forked child before anything else runs there."""
        ...


_ALL: WeakSet[Forkable] = WeakSet()


def reset_after_fork(each: Forkable) -> None:
    """From now on, as long as it lives, it is called when it finds itself in a child."""
    _ALL.add(each)


def _in_child() -> None:
    for each in list(_ALL):
        each.begin_in_child()


os.register_at_fork(after_in_child=_in_child)
