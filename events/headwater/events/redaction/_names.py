"""The names that secrets have, and how a text is written anew so that they are found however somebody writes them.

A folded text has letters in lower case and without accents, those of other alphabets as the Latin ones that they look
like, what was escaped (`%70`, `\\u0070`, `&#112;`, also several times) as it is, and no invisible characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from functools import cache
from itertools import compress
from typing import Final, NamedTuple


def word_set(words: str) -> frozenset[str]:
    """The words of a list that stands in the source as a text."""
    return frozenset(words.split())


STRONG: Final = word_set("""
    password passwd passw0rd passwort passwrd passwrod passw pasword p@ssw pa$$w pass_phrase pass_code
    pass_key keypass kennwort kenn_wort
    contrasena clave_secreta mot_de_passe senha haslo wachtwoord losenord adgangskode salasana jelszo parola
    parool heslo sifre пароль 密码 密碼 口令 パスワード 暗証番号 비밀번호
    secret token credential jaas bearer authorization oauth
    cookie webhook connection_string conn_str shared_access user_info identified_by set-cookie master_auth
    login_module csrf xsrf mnemonic nickserv securestring secure_string recovery_code backup_code security_code
    security_answer verification_code authentication_string serial_key activation_key product_key pairing_key isakmp_key
    access_key account_key admin_key aes_key api_key app_key auth_key cipher_key client_key
    crypto_key decryption_key deploy_key encryption_key hmac_key kms_key license_key master_key private_key
    pvt_key rsa_key sas_key service_key session_key shared_key signing_key ssh_key sse_key storage_key
    subscription_key symmetric_key
""")
"""Whatever holds one of these, with separators or without, is a secret's name. `_`: the words also stand apart."""
_SHORT: Final = ("pwd", "pswd")
"""The same, but with nothing between the letters."""
WEAK: Final = word_set("""
    pass pw pin otp totp hotp sas sig signature auth jwt psk cred creds assertion key keys pem hmac sid salt
""")
"""These are a secret's name where they are a word of an option's name; in texts some of them, where a value follows."""

_ESCAPE: Final = re.compile(
    r"%(?:25)*(?P<percent>[2-7][0-9a-f]|0[9ad])|(?P<bytes>(?:%(?:25)*[89a-f][0-9a-f])+)"
    r"|(?<!\\)\\+(?:u(?P<high>d[89ab][0-9a-f]{2})\\+u(?P<low>d[c-f][0-9a-f]{2})|u(?P<code>(?!d[89a-f])[0-9a-f]{4})"
    r"|u\{(?P<braced>[0-9a-f]{1,5})\}|x(?P<hex>[2-7][0-9a-f]))"
    r"|&(?:amp;)*(?:#x(?P<number>[0-9a-f]{2,5})|#0*(?P<decimal>\d{2,6})|(?P<entity>quot|apos|lt|gt|equals|colon|commat|sol));?"
)
_ENTITIES: Final = {
    "quot": '"',
    "apos": "'",
    "lt": "<",
    "gt": ">",
    "equals": "=",
    "colon": ":",
    "commat": "@",
    "sol": "/",
}
_MOST_ESCAPES: Final = 2_000
_MOST_LAYERS: Final = 4
_BEYOND: Final = re.compile("[\U000e0000-\U000e0fff]")
_LOOK_ALIKES: Final = str.maketrans(
    "аеёорсухіїјѕԁԛԝкмтвнпгьһӏѵαβγεηικνοπρτυχωßłøđħıɡɑɩᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ",
    "aeeopcyxiijsdqwkmtbhnrbhlvabyenikvonptuxwslodhigaiabcdefghijklmnoprstuvwyz",
)  # fmt: skip
_INVISIBLE: Final = frozenset(["Cf", "Mn", "Me", "Cc"])
_RANGES: Final = (
    (0x80, 0x600), (0x1AB0, 0x1B00), (0x1D00, 0x2190), (0x2460, 0x2500), (0x180B, 0x1810), (0x20D0, 0x2100),
    (0xFE00, 0xFE70), (0xFEFF, 0xFFF0), (0x1D400, 0x1D800), (0x1F100, 0x1F1A0), (0xA730, 0xA732),
    (0x3164, 0x3165), (0x115F, 0x1161),
)  # fmt: skip
_LONGEST: Final = 256
"""Only the end of a longer name is looked at: no option is called so."""
_DROPPED: Final = str.maketrans("", "", "-_. ")
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SEPARATORS: Final = "[-_.]*"
_SPACE: Final = r"(?:[-_.\s]|\\+[nrt]){0,12}"


class Folded(NamedTuple):
    text: str
    places: Sequence[int]
    """Where each of its characters begins in the text that it was made from."""


def fold(text: str) -> Folded | None:
    """The folded text; None where so much of it is escaped that it can't be read in time."""
    if text.isascii():
        folded = Folded(text.lower(), range(len(text)))
    else:
        folded = Folded(_BEYOND.sub("\0", text).translate(_table()), range(len(text)))
    allowed = _MOST_ESCAPES
    for _ in range(_MOST_LAYERS):
        if "\0" in folded.text:
            folded = _without_gaps(folded)
        if "%" not in folded.text and "\\" not in folded.text and "&" not in folded.text:
            break
        plain, count = _ESCAPE.subn(_unescape, folded.text, allowed)
        allowed -= count
        if allowed <= 0:
            return None
        if count == 0:
            break
        folded = Folded(plain, folded.places)
    return folded


def _without_gaps(folded: Folded) -> Folded:
    text, places = folded
    return Folded(text.replace("\0", ""), list(compress(places, map("\0".__ne__, text))))


def names_secret(name: str) -> bool:
    """Whether the value of an option of this name is a secret."""
    folded = fold(name[-_LONGEST:])
    if folded is None or strong_names(is_ascii=folded.text.isascii()).search(folded.text):
        return True
    words = [word.lower() for word in _WORD.findall(name[-_LONGEST:] if name.isascii() else folded.text)]
    return any(word in WEAK or word.endswith(("pass", "pw", "auth")) for word in words)


def squash(name: str) -> str:
    """The name as it is compared with others: folded and without separators."""
    folded = fold(name[-_LONGEST:])
    return name if folded is None else folded.text.translate(_DROPPED)


@cache
def strong_names(*, is_ascii: bool) -> re.Pattern[str]:
    """The pattern of all that is surely a secret's name, in a folded text."""
    names = [folded.text for folded in map(fold, sorted(STRONG)) if folded]
    usable = [name for name in names if name.isascii() or not is_ascii]
    return re.compile(f"{pattern_of(usable, _SEPARATORS)}|{pattern_of(_SHORT, '')}")


def pattern_of(names: Collection[str], joint: str) -> str:
    """One pattern for many names, in which those that begin alike share their beginning."""
    following: dict[str, list[str]] = {}
    for name in names:
        if name:
            following.setdefault(name[0], []).append(name[1:])
    branches = []
    for first, rests in following.items():
        rest = pattern_of(rests, joint)
        between = joint if rest and not rest.startswith(_SPACE) and first != "_" else ""
        branches.append((_SPACE if first == "_" else re.escape(first)) + between + rest)
    ends_here = "?" if "" in names and branches else ""
    return branches[0] if len(branches) == 1 and not ends_here else f"(?:{'|'.join(branches)}){ends_here}"


@cache
def _table() -> list[str | int]:
    """For each code point the one character that it is folded to."""
    table: list[str | int] = list(range(0x20000))
    table[:0x80] = [chr(code).lower() for code in range(0x80)]
    for start, end in _RANGES:
        for code in range(start, end):
            table[code] = _folded_character(chr(code))
    return table


def _folded_character(char: str) -> str:
    if unicodedata.category(char) in _INVISIBLE or char in "\u3164\u115f\u1160\uffa0":
        return "\0"
    first = unicodedata.normalize("NFKD", char).casefold()[:1] or char
    return first.translate(_LOOK_ALIKES)


def _unescape(found: re.Match[str]) -> str:
    """What was escaped, with NULs behind it up to the length of the escape."""
    given = found.groupdict()
    if given["entity"]:
        plain = _ENTITIES[given["entity"]]
    elif given["bytes"]:
        plain = bytes.fromhex(given["bytes"].replace("%25", "").replace("%", "")).decode("utf-8", "replace")
    elif given["decimal"]:
        plain = chr(min(int(given["decimal"]), 0x10FFFF))
    elif given["high"]:
        plain = chr(0x10000 + ((int(given["high"], 16) & 0x3FF) << 10) + (int(given["low"], 16) & 0x3FF))
    else:
        codes = (given["percent"], given["code"], given["hex"], given["braced"], given["number"])
        plain = chr(int(next(filter(None, codes)), 16))
    folded = plain.lower() if plain.isascii() else plain.translate(_table())
    length = len(found.group())
    return folded[:length].ljust(length, "\0")
