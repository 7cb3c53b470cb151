"""Secrets in free text: errors, comments, details of Gaps, SQL.

Nobody knows where a secret ends in a text. So from the place where one is named or recognised, all goes up to the next
blank line; values stand below their names in tables, YAML, XML and code. What is kept of such a paragraph is certain:
the words before the place, the whole lines of words above it, and the frames of a stack.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from heapq import merge
from typing import Final

from headwater.events.redaction._folding import Folded, fold
from headwater.events.redaction._names import any_of, strong_names, word_set
from headwater.events.redaction._tokens import random_places, token_places

REDACTED: Final = "*********(redacted)"
"""The mark that stands where a secret stood: Spark's own, so that people know it and tools that look for it find it."""
KEPT: Final = 12_288
"""Characters that are kept of a text; the rest goes."""
READ: Final = KEPT + 1_024
"""Characters that are read of a text, and that have to be given where somebody cuts it before."""
_MOST_PARTS: Final = 25
"""Of those that are hidden; after so many the rest of the text goes."""
_NAME: Final = re.compile(r"[\w.-]{1,256}")

# These are for folded texts, in lower case but for the last one.

_FILE_SAID: Final = (
    "no|not|is|isn't|has|names|can|can't|cannot|could|couldn't|failed|permission|access|there|doesn't|does|was|and|for"
)
# Words that hold a secret's name and are none. The last is of a file, and says what is the matter with it.
_HARMLESS: Final = any_of(
    r"""
    tokeni[sz]  token recognition error  delegation token\b  jsontoken  start_(?:object|array) token
    end_(?:object|array) token  extra input '[a-z_<>]{1,32}'  mismatched input '[a-z_<>]{1,32}'  missing '[a-z_]{1,32}'
    at or near '[a-z_]{1,32}'  unexpected token '[^\w\s]{1,3}'  unexpected_token\]  wrong_num_token\]  aes_key_length\]
    password[-_.]?(?:file|callable|command)\b(?!\s*[=:]?\s*['"])  /0x[0-9a-f]+@[0-9a-f]
    invalid credentials with sasl mechanism [a-z0-9-]{1,20}(?![\w:=-])
    producer\.sasl\.username and producer\.sasl\.password(?![\w.-]|\s*[:='"])
    abfss?://[\w.-]+@  wasbs?://[\w.-]+@  adl://[\w.-]+@  oci://[\w.-]+@
    """,
    r"/secrets?(?=/[\w.-]|\.(?:conf|properties|json|ya?ml|toml|xml|ini|env|txt|jks|p12)\b)"
    rf"(?=[\w./+-]{{0,200}}[\"')\]]{{0,2}}(?:[:,;]? (?:{_FILE_SAID})\b|[.]?\s{{0,8}}\Z))",
)
_HARMLESS_HINTS: Final = ("token", "password", "sasl", "://", "length]", "0x", "/secret")
_WEAK: Final = word_set("""
    pass pw pin psk otp mfa 2fa puk mdp kode clave sandi sifra sas sig sid salt seed auth cred creds cvv cvv2 cvc hmac
    nonce pepper assertion license
""")
"""These are a secret's name only where a value follows."""
_VALUE_FOLLOWS: Final = (
    r"(?![a-z])(?:[-_ ](?:code|number))?(?:[\]\"'`>)\s]{0,8}(?::?=|[-=~]>|:(?![:/])|\||,\s*[\"'])"
    r"|(?:\.\w{1,20})?[ \t]*[\"'(>#]|\s(?:is|was|are|in|like)\b)"
)
_OF_LOGINS: Final = (
    r"(?:fail\w*|err\w*|servers?|services?|methods?|type|mode|scheme|mechanisms?|provider|plugin|module|is|was|has|in|for"
    r"|to|with|and|or|by|not|required)\b"
)
_NAMED: Final = any_of(
    *(word + _VALUE_FOLLOWS for word in sorted(_WEAK)),
    *(rf"{sign}(?:key|code|sign|session|hmac|hash)=" for sign in (r"\?", "&", ";", "#")),
    *(
        rf"{command}\b(?:[^\n]{{0,99}}?[\s\"=])?[\w.]{{1,64}}/[^\s/\"'<]+(?=[\s\"'<]|\Z)"
        for command in ("sqlplus", "sqlldr", "imp", "exp", "impdp", "expdp", "tnsping", "rman", "conn(?:ect)?")
    ),
    rf"auth\s(?!{_OF_LOGINS})[\w.@/+-]{{1,64}}\s{{1,4}}\S",
    r"""
    pass(?![a-z])(?:(?<=[a-z_.-]....)(?<!bypass|ompass|urpass|espass)(?<!by-pass)|(?=:\S))  pw\s\S  psk\s+\w  creds? \w
    keytab (?:for|of) [^\s:=]{1,64}\s{0,4}[:=]  sess(?:ion)?[-_. ]?id\s?[=:]  refresh=  code=[^\s&]+&state=
    signature["'`]{0,4}\s{0,8}(?:[-=]>|=|["'`]\s{0,8}:|mism)  invalid signature  hub-signature
    auth [\w.@-]{1,64}[:/]\S  log(?:in|ging in as|ged in as) [\w.@-]{1,64}[:/]\S  on >\S
    basic\s+(?=[a-z+/_=-]{0,200}[0-9=])[\w+/=-]{6}  negotiate\s+\S{8}  ntlm\s+\S{8}  digest[\s:=]\s*\w+[=:]
    x-[a-z-]{0,20}(?:key|auth|session|api)\b  crypt(?:ed)? with  crypt\s?\(  openrowset\s?\(  linkedsrvlogin
    encrypt_string
    pbkdf2  \{s?sha  \$(?:2[abxy]?|[156y]|apr1|argon2\w{0,2})\$  scram-sha-\d{1,3}\$
    :(?:\d{2,5}|\*):[^:\s]{1,64}:[^:\s]{1,64}:\S  //[\w.%-]{1,64}:[ \t\r]*[\n\v]
    \|\s?(?:sudo|kinit)\b  sudo -s\b  <<<  <<[-~]?[\\"']{0,4}[a-z_]  =<\(
    <<[-~]?\s{1,4}["']{0,4}[a-z_]\w{0,32}["']{0,4}\s{0,4}[\n\v]
    -(?<=[\s"',]-)(?:[a-z]{0,3}?[pauwkxbe]|-?value[ =]|o\s+user(?:name)?=)  -(?<=[(\[]-)[pauwk],
    -(?<=[\s"',]-)-(?:[a-z-]{0,16}(?:user|auth|creds|cert)[ =][^\s:]{1,64}:|auth[ =])
    /(?<=\s/)(?:r?p|u(?:ser)?|pass)[:\s]  user=\w{1,64}%  user \S{1,64} (?:using|pass) \s?\S
    """,
)
_LOGINS: Final = any_of(
    r"""
    AUTH (?=\S)  LOGIN (?=\S)  IDENTIFY (?=\S)  AUTHENTICATE (?=\S)  PASS (?=\S)  CONN (?=\S)  EAP (?=\S)  ACL SETUSER
    SASL PLAIN (?![a-z]{4})  _KEY(?=["' ]{0,2}[:=])
    """
)
_LINE_WITH_AT: Final = re.compile(r"(?m)^[^\n@]*@[^\n]*")
_USER_INFO: Final = re.compile(r"(?<![^ \t\r\n@])(?=[^ \t\r\n@]*[:/\\%])[^ \t\r\n@]+@(?=[^\s@])")

# These are for texts as they are.

FRAME: Final = re.compile(r"(?m)^[ \t]+at (?:[\w$]+[./])+[\w$<>]+\([\w$. ]{1,80}(?::\d{1,6})?\)[ \t]*$")
_UNCERTAIN: Final = re.compile(r"[^A-Za-z\s,.:;()\[\]{}$_+>-]")
_WORDS: Final = re.compile(r"\s*(?:[A-Za-z]+(?:[-'][A-Za-z]+)*[,.]?[ \t]+)*(?:[A-Za-z]+(?:[-'][A-Za-z]+)*[,.:]?\s*)?")
_BLANK: Final = re.compile(r"\n[ \t\r\f\v]*\n")
_BINDS: Final = (":", " =", "->", "=>")
_VISIBLE: Final = re.compile(r"\w")
Place = tuple[int, int]
"""Where a secret is named or recognised, and until where the text may be shown."""


def has_secret(text: str) -> bool:
    """Whether a secret is named or recognised in the text."""
    folded = fold(text)
    return folded is None or next(_places(folded, None), None) is not None


def without_secrets(text: str, custom: re.Pattern[str] | None = None) -> str:
    """The text with a mark in the place of what may be secret; the very same text where nothing is.

    What is longer than can be kept is read a bit further than it is kept: a password without the `@` behind it doesn't
    look like one.
    """
    read = text[:READ]
    folded = fold(read)
    if folded is None:
        return REDACTED
    pieces: list[str] = []
    done = 0
    for count, (start, end) in enumerate(_hidden_parts(read, _places(folded, custom))):
        if start >= KEPT:
            break
        pieces += (read[done:start], REDACTED)
        if count == _MOST_PARTS:
            done = len(read)
            break
        pieces += (f"\n{frame}" for frame in FRAME.findall(read, start, end))
        done = end
    if not pieces and len(text) <= KEPT:
        return text
    return "".join([*pieces, read[done:KEPT], "…" if len(text) > KEPT else ""])


def _hidden_parts(text: str, places: Iterator[Place]) -> Iterator[tuple[int, int]]:
    done = 0
    for start, shown_until in places:
        if start < done:
            continue
        line = text.rfind("\n", done, start) + 1 or done
        if _is_frame(text, line, start):
            continue
        top = _first_uncertain_line(text, done, line)
        begin = top if top < line else _end_of_words(text, line, shown_until)
        done = _end_of_paragraph(text, start, shown_until)
        if _VISIBLE.search(text, begin, done):
            yield begin, done
        if done == len(text):
            return


def _is_frame(text: str, line: int, start: int) -> bool:
    frame = FRAME.match(text, line)
    return frame is not None and frame.end() > start


def _first_uncertain_line(text: str, done: int, line: int) -> int:
    """The beginning of the lines right above this one that aren't only words: a value may stand above its name."""
    top = line
    while top > done:
        above = text.rfind("\n", done, top - 1) + 1 or done
        if _WORDS.fullmatch(text, above, top) or FRAME.fullmatch(text, above, top - 1):
            break
        top = above
    return top


def _end_of_words(text: str, line: int, shown_until: int) -> int:
    """Where something other than words begins in the line."""
    uncertain = _UNCERTAIN.search(text, line, shown_until)
    if not uncertain:
        return shown_until
    return max(line, text.rfind(" ", line, uncertain.start()) + 1, text.rfind("\t", line, uncertain.start()) + 1)


def _end_of_paragraph(text: str, start: int, shown_until: int) -> int:
    """The next blank line with something before it; behind a PEM block, or the end of the text for one that is cut."""
    at = shown_until
    if "BEGIN " in text[start : start + 11]:
        at = text.find("END ", start)
        if at < 0:
            return len(text)
    for blank in _BLANK.finditer(text, at):
        if _VISIBLE.search(text, at, blank.start()) and not _binds(text[max(at, blank.start() - 12) : blank.start()]):
            return blank.start()
    return len(text)


def _binds(end: str) -> bool:
    """Whether a value is to come after the end of this line."""
    folded = fold(end)
    return folded is None or folded.text.rstrip().endswith(_BINDS)


def _places(folded: Folded, custom: re.Pattern[str] | None) -> Iterator[Place]:
    """All places, from left to right. Each way to find some reads the text once."""
    text, places = folded
    seen = text.lower()
    if any(hint in seen for hint in _HARMLESS_HINTS):
        seen = _HARMLESS.sub(_filler, seen)
    starts: list[Iterable[int]] = [token_places(text), random_places(text), _starts(_LOGINS, text)]
    starts.append(_starts(_NAMED, seen))
    if "@" in seen:
        starts += [_addresses(seen), _starts(_USER_INFO, seen)]
    ways: list[Iterable[Place]] = [strong_names(seen), *(((at, at) for at in each) for each in starts)]
    if custom is not None:
        ways.append(found.span() for found in _NAME.finditer(text) if custom.search(found.group()))
    return ((places[start], places[end - 1] + 1 if end > start else places[start]) for start, end in merge(*ways))


def _starts(pattern: re.Pattern[str], text: str) -> Iterator[int]:
    return (found.start() for found in pattern.finditer(text))


def _filler(found: re.Match[str]) -> str:
    return "~" * len(found.group())


def _addresses(seen: str) -> Iterator[int]:
    """Those that an `@` follows somewhere in their line, since passwords may hold anything."""
    for line in _LINE_WITH_AT.finditer(seen):
        start = seen.find("//", line.start(), seen.rfind("@", line.start(), line.end()))
        if start >= 0:
            yield start
