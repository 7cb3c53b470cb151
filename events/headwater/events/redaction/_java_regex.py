"""Java's regular expressions in Python's words, as far as `spark.redaction.regex` uses them.

Where the two differ and Python has no equal, the translation matches more rather than less: a possessive quantifier
becomes a greedy one. What can't be said is an error that tells how to say it otherwise.
"""

from __future__ import annotations

import re
from typing import Final

from headwater.errors import ConfigurationError

SPARK_DEFAULT: Final = "(?i)secret|password|token|access[.]?key"

_CLASSES: Final = {
    "Lower": "a-z", "Upper": "A-Z", "Alpha": "a-zA-Z", "Digit": "0-9", "Alnum": "a-zA-Z0-9", "XDigit": "0-9a-fA-F",
    "Space": r"\s", "Blank": r" \t", "Punct": r"!-/:-@\[-`{-~", "ASCII": r"\x00-\x7f", "L": "a-zA-Z\u00aa-\uffff",
    "IsAlphabetic": "a-zA-Z\u00aa-\uffff", "Lu": "A-Z\u00c0-\u00de", "Ll": "a-z\u00df-\u00ff", "N": "0-9",
    "Nd": "0-9", "IsDigit": "0-9",
}  # fmt: skip
_TOKEN = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|\Z)"
    r"|\\(?P<property>[pP])(?:\{(?P<name>\w+)\}|(?P<letter>[A-Z]))"
    r"|\\x\{(?P<code>[0-9a-fA-F]{1,6})\}"
    r"|\\k<(?P<back>\w+)>"
    r"|\\(?P<escape>.)"
    r"|\(\?(?P<flags>[a-zA-Z]+)(?P<ends>[:)])"
    r"|\(\?<(?P<group>[A-Za-z]\w*)>"
    r"|(?P<atomic>\(\?>)"
    r"|(?P<possessive>[*+?}]\+)"
    r"|(?P<plain>.)",
    re.DOTALL,
)
_ESCAPES: Final = {"h": r"[ \t]", "H": r"[^ \t]", "R": r"(?:\r\n|\n|\r)", "z": r"\Z", "Z": r"(?=\n?\Z)", "e": r"\x1b"}
_FLAGS: Final = frozenset("imsx")
_KEY: Final = "spark.redaction.regex"


def compile_java(pattern: str) -> re.Pattern[str]:
    """The Python pattern that finds what Java's would."""
    try:
        return re.compile(_Translation(pattern).run())
    except (re.error, OverflowError, RecursionError) as error:
        raise ConfigurationError(
            f"{_KEY}: {pattern!r} can't be used as a regular expression here ({error}); "
            f"write it without Java's own extensions, for example {SPARK_DEFAULT!r}"
        ) from error


class _Translation:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._out: list[str] = []
        self._open: list[int] = [0]  # per open group: how many scoped flag groups must be closed with it
        self._in_class = False

    def run(self) -> str:
        for token in _TOKEN.finditer(self._pattern):
            kind = token.lastgroup
            text = token.group()
            if self._in_class and kind in {"flags", "ends", "group", "atomic", "possessive"}:
                self._each_plain(text)
            else:
                self._out.append(self._said(token))
        return "".join(self._out) + ")" * self._open[0]

    def _said(self, token: re.Match[str]) -> str:
        found = {name: text for name, text in token.groupdict().items() if text is not None}
        for name, say in (
            ("plain", self._plain),
            ("escape", self._escape),
            ("quoted", re.escape),
            ("code", _character),
        ):
            if name in found:
                return say(found[name])
        if "property" in found:
            return self._property(found["property"], found.get("name") or found["letter"])
        return f"(?P={found['back']})" if "back" in found else self._group(token.group(), found)

    def _group(self, text: str, found: dict[str, str]) -> str:
        if "flags" in found:
            return self._flagged(found["flags"], found["ends"])
        if "possessive" in found:
            return text[0]
        self._open.append(0)
        return f"(?P<{found['group']}>" if "group" in found else "(?:"

    def _flagged(self, flags: str, ends: str) -> str:
        """Java lets flags stand anywhere and hold until the group ends; Python wants a group of their own."""
        known = "".join(flag for flag in flags if flag in _FLAGS)
        if ends == ":":
            self._open.append(0)
        else:
            self._open[-1] += 1
        return f"(?{known}:"

    def _property(self, letter: str, name: str) -> str:
        try:
            members = _CLASSES[name]
        except KeyError:
            raise self._unknown(f"\\{letter}{{{name}}}", "spell the characters out, as in [A-Za-z]") from None
        if self._in_class:
            if letter == "P":
                raise self._unknown(f"\\P{{{name}}} inside [...]", "write it outside of the brackets")
            return members
        return f"[{'^' if letter == 'P' else ''}{members}]"

    def _escape(self, letter: str) -> str:
        if letter == "G":
            raise self._unknown("\\G", "leave it out")
        if self._in_class and letter in _ESCAPES:
            return _ESCAPES[letter].strip("[]")
        return _ESCAPES.get(letter, f"\\{letter}" if letter.isascii() else letter)

    def _plain(self, char: str) -> str:
        if self._in_class:
            return self._in_brackets(char)
        if char == "[":
            self._in_class = True
        elif char == "(":
            self._open.append(0)
        elif char == ")" and len(self._open) > 1:
            return ")" * (1 + self._open.pop())
        return char

    def _in_brackets(self, char: str) -> str:
        if char == "[" or (char == "&" and self._out[-1] == "&"):
            raise self._unknown("a union or intersection inside [...]", "name the characters in one plain [...]")
        if char == "]":
            self._in_class = False
        return char

    def _each_plain(self, text: str) -> None:
        self._out.extend(self._plain(char) for char in text)

    def _unknown(self, what: str, instead: str) -> ConfigurationError:
        return ConfigurationError(f"{_KEY}: {self._pattern!r} uses {what}, which has no equal here; {instead}")


def _character(code: str) -> str:
    return re.escape(chr(min(int(code, 16), 0x10FFFF)))
