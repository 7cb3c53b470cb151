"""Keys that were meant for headwater and are so misspelt that they are nobody's: reported, because they do nothing.

Others' keys are left alone: the section has to be two slips of the pen away at most, and what stands below it has to be
nearly a key of ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from headwater.config.model import Keys
from headwater.listeners.settings import PREFIX, Settings

_ROOT, _SECTION = PREFIX.rstrip(".").split(".")
_MAX_DISTANCE: Final = 2
_MIN_SIMILARITY: Final = 0.8
_ENABLED: Final = "enabled"


def find_misspellings(keys: Iterable[str], *, is_enabled: bool = True) -> list[str]:
    """Words for those that were meant for us: one for each wrong section, in the keys' order. Keys below ours are
    checked by who reads them; where headwater isn't enabled nobody does,
    and only one that means `enabled` is reported."""
    found: dict[str, list[tuple[str, str]]] = {}
    for key in sorted(keys):
        section, right = _intended_key(key, is_enabled=is_enabled)
        if right:
            found.setdefault(section, []).append((key, right))
    return [_describe(section, misspelt) for section, misspelt in found.items()]


def edit_distance(word: str, right: str) -> int:
    """How many letters were left out, added, changed or swapped with the next one."""
    row = list(range(len(right) + 1))
    before = row
    for i, letter in enumerate(word, 1):
        last, before, row = before, row, [i]
        for j, wanted in enumerate(right, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            is_swap = i > 1 and j > 1 and letter == right[j - 2] and word[i - 2] == wanted
            row.append(min(cost, last[j - 2] + 1) if is_swap else cost)
    return row[-1]


def _intended_key(key: str, *, is_enabled: bool) -> tuple[str, str]:
    """The wrong section that a key stands in, and the key that was meant; nothing for others' and for right ones."""
    if key.startswith(PREFIX):
        rest = key[len(PREFIX) :]
        is_switch = not is_enabled and rest != _ENABLED and edit_distance(rest.lower(), _ENABLED) <= _MAX_DISTANCE
        return (PREFIX, PREFIX + _ENABLED) if is_switch else ("", "")
    first, _, below = key.partition(".")
    second, _, rest = below.partition(".")
    if _is_near(second, _SECTION) and _is_near(first, _ROOT):
        return f"{first}.{second}.", _nearest_key(rest)
    return (f"{first}.", _nearest_key(below)) if _is_near(first, _SECTION) else ("", "")


def _is_near(word: str, right: str) -> bool:
    return abs(len(word) - len(right)) <= _MAX_DISTANCE and edit_distance(word.lower(), right) <= _MAX_DISTANCE


def _nearest_key(rest: str) -> str:
    """Our key that this is nearly, if there is one."""
    keys = Keys.of(Settings)
    section = keys.section_of(rest)
    if section is not None:
        return PREFIX + rest
    near = get_close_matches(rest.lower(), [*keys.fields], n=1, cutoff=_MIN_SIMILARITY)
    return PREFIX + near[0] if near else ""


def _describe(section: str, misspelt: list[tuple[str, str]]) -> str:
    key, right = next((found for found in misspelt if found[1].endswith(_ENABLED)), misspelt[0])
    more = f" ({len(misspelt)} keys begin with {section})" if len(misspelt) > 1 else ""
    return f"there is no key {key}: did you mean {right}?{more}"
