"""Lists of literals become one: `IN (?, ?, ?)` is `IN (?)`, so that no text changes with their number.

The same holds for the rows of `VALUES (?, ?), (?, ?)`, for Catalyst's `INSET ?, ?` and for `[?, ?]`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

MARK: Final = "?"
_LIST: Final = re.compile(r"\[|\b(?i:IN\s*\(|VALUES\b|INSET\b)")
_PART: Final = re.compile(r"(\s*)(\w+|[?,()\[\]]|`[^`]*(?:``[^`]*)*`|#\d+L?(?!\w)|\S|\Z)")
_OPENS_BARE_LIST: Final = frozenset(["VALUES", "INSET"])
_ENDS_ITEM: Final = frozenset([",", ")", "]", ""])
_BEGINS_NAME: Final = re.compile(r"[\w?]|`.|#\d")


def without_repetition(text: str) -> str:
    """The text without literals, with equal neighbours in lists kept once."""
    if not _LIST.search(text):
        return text
    folder = _Folder()
    parts = _PART.findall(text)
    for (gap, part), (_, following) in zip(parts, [*parts[1:], ("", "")], strict=True):
        folder.gaps.append(gap)
        folder.add(part, following)
    return "".join([part for pair in zip(folder.gaps, folder.parts, strict=True) for part in pair])


@dataclass
class _Frame:
    """What lies between two brackets, or the whole text."""

    opened_at: int = -1
    is_list: bool = False
    in_bare_list: bool = False
    last_item: tuple[int, int] | None = None


@dataclass
class _Folder:
    gaps: list[str] = field(default_factory=list[str])
    parts: list[str] = field(default_factory=list[str])
    frames: list[_Frame] = field(default_factory=lambda: [_Frame()])

    def add(self, part: str, following: str) -> None:
        parts, frames = self.parts, self.frames
        parts.append(part)
        if part == MARK:
            self._end_item(len(parts) - 1, following)
        elif part in {"(", "["}:
            is_list = part == "[" or (len(parts) > 1 and parts[-2].upper() == "IN")
            frames.append(_Frame(len(parts) - 1, is_list=is_list))
        elif part in {")", "]"} and len(frames) > 1:
            self._end_item(frames.pop().opened_at, following)
        elif part != ",":
            frames[-1].last_item = None
            frames[-1].in_bare_list = part.upper() in _OPENS_BARE_LIST

    def _end_item(self, start: int, following: str) -> None:
        """An item that equals the one before it goes, if it is a whole item and its brackets are a list."""
        frame, parts = self.frames[-1], self.parts
        before = parts[start - 1] if start else ""
        item, frame.last_item = frame.last_item, None
        if not (frame.is_list or frame.in_bare_list) or not self._may_end(frame, following):
            return
        if before == "," and item and parts[slice(*item)] == parts[start:]:
            del parts[start - 1 :], self.gaps[start - 1 :]
            frame.last_item = item
        elif before == "," or start - 1 == frame.opened_at or before.upper() in _OPENS_BARE_LIST:
            frame.last_item = start, len(parts)

    def _may_end(self, frame: _Frame, following: str) -> bool:
        return following in _ENDS_ITEM or (frame.in_bare_list and _BEGINS_NAME.match(following) is not None)
