"""What a factory can offer to `headwater doctor`: an examination of what its listener would need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, runtime_checkable

from headwater.spi.listeners import ListenerContext


class Condition(str, Enum):
    """How something was found."""

    FINE = "fine"
    DOUBTFUL = "doubtful"
    """It works, and somebody should look at it."""
    WRONG = "wrong"
    """It doesn't work, or what is promised doesn't hold."""


@dataclass(frozen=True)
class Finding:
    """What one step of an examination found. Neither text holds a secret."""

    step: str
    """What was looked at, in a word or two."""
    state: Condition
    words: str
    advice: str = ""
    """What to change, where something is to be changed: the key, or a command that can be copied."""

    @classmethod
    def fine(cls, step: str, words: str) -> Finding:
        return cls(step, Condition.FINE, words)

    @classmethod
    def doubtful(cls, step: str, words: str, advice: str = "") -> Finding:
        return cls(step, Condition.DOUBTFUL, words, advice)

    @classmethod
    def wrong(cls, step: str, words: str, advice: str = "") -> Finding:
        return cls(step, Condition.WRONG, words, advice)


@runtime_checkable
class Examinable(Protocol):
    """A listener factory that can examine what its listener would meet."""

    def examine(self, context: ListenerContext) -> Iterator[Finding]:
        """Look at everything that the listener needs, one thing after another, and yield what was found as it is found;
        end where the next step makes no sense any more.

        It may write where the listener writes: one event, `Closed`, of a producer that tells nothing else. Each step
        comes back within some seconds, whatever the target does. What is raised shows as something that is wrong.
        """
        ...
