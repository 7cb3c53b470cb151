"""Lists of literals become one: `IN (?, ?, ?)` is `IN (?)`, so that no text changes with their number.

The same holds for the rows of `VALUES (?, ?), (?, ?)`, for Catalyst's `INSET ?, ?` and for `[?, ?]`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from headwater.events.redaction._scanner import END, SqlToken, TokenKind

_OPENS_BARE_LIST = frozenset(["VALUES", "INSET"])
_CLOSES = {"(": ")", "[": "]"}


@dataclass
class _Frame:
    """What lies between two brackets, or the whole text."""

    opened_at: int = -1
    is_list: bool = False
    in_bare_list: bool = False
    last_item: tuple[int, int] | None = None

    @property
    def folds(self) -> bool:
        return self.is_list or self.in_bare_list


@dataclass
class _Folder:
    out: list[SqlToken] = field(default_factory=list[SqlToken])
    frames: list[_Frame] = field(default_factory=lambda: [_Frame()])

    def add(self, token: SqlToken, following: SqlToken) -> None:
        frame = self.frames[-1]
        before = self.out[-1] if self.out else END
        self.out.append(token)
        if token.text in _CLOSES:
            is_list = token.text == "[" or before.word == "IN"
            self.frames.append(_Frame(len(self.out) - 1, is_list=is_list))
        elif token.text in {")", "]"} and len(self.frames) > 1:
            closed = self.frames.pop()
            self._end_item(closed.opened_at, following)
        elif token.kind is TokenKind.MARK:
            self._end_item(len(self.out) - 1, following)
        elif token.text != ",":
            frame.last_item = None
            frame.in_bare_list = token.word in _OPENS_BARE_LIST

    def _end_item(self, start: int, following: SqlToken) -> None:
        """An item that equals the one before it goes, if it is a whole item and its brackets are a list."""
        frame = self.frames[-1]
        before = self.out[start - 1] if start else END
        is_first = start - 1 == frame.opened_at or before.word in _OPENS_BARE_LIST
        is_whole = frame.folds and (before.text == "," or is_first) and self._may_end(frame, following)
        if not is_whole:
            frame.last_item = None
        elif (
            before.text == ","
            and frame.last_item
            and self._texts(*frame.last_item) == self._texts(start, len(self.out))
        ):
            del self.out[start - 1 :]
        else:
            frame.last_item = (start, len(self.out))

    def _may_end(self, frame: _Frame, following: SqlToken) -> bool:
        return following.text in {",", ")", "]", ""} or (frame.in_bare_list and following.kind is not TokenKind.SIGN)

    def _texts(self, start: int, end: int) -> list[str]:
        return [token.text for token in self.out[start:end]]


def folded(tokens: Iterable[SqlToken]) -> list[SqlToken]:
    """The tokens with equal neighbours in lists of literals kept once."""
    folder = _Folder()
    waiting: SqlToken | None = None
    for token in tokens:
        if waiting is not None:
            folder.add(waiting, token)
        waiting = token
    if waiting is not None:
        folder.add(waiting, END)
    return folder.out
