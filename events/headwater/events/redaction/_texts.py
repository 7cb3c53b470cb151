"""Secrets in free text: errors, comments, details of Gaps, SQL.

Nobody knows where a secret ends in a text. So from the place where one is named or recognised, all goes up to the next
blank line; values stand below their names in tables, YAML, XML and code. What is kept of such a paragraph is certain:
the words before the place, the whole lines of words above it, and the frames of a stack.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from heapq import merge
from typing import Final

from headwater.events.redaction._names import Folded, fold, pattern_of, strong_names, word_set

REDACTED: Final = "*********(redacted)"
"""The mark that stands where a secret stood: Spark's own, so that people know it and tools that look for it find it."""
KEPT: Final = 12_288
"""Characters that are kept of a text; the rest goes."""
READ: Final = KEPT + 1_024
"""Characters that are read of a text, and that have to be given where somebody cuts it before."""
_MOST_PARTS: Final = 25
"""Of those that are hidden; after so many the rest of the text goes."""
_NAME: Final = re.compile(r"[\w.-]{1,256}")

# Every alternative of these patterns begins with a letter or sign, which Python looks for first: that is ten times as
# fast. So what must not stand before it comes behind its first letter.

_OF_FILES: Final = (
    "no|not|is|isn't|has|names|can|can't|cannot|could|couldn't|failed|permission|access|there|doesn't|does|was|and|for"
)
# Words that hold a secret's name and are none.
_HARMLESS: Final = re.compile(
    r"b(?<!\w.)y-?pass|com(?<!\w...)pass|encompass|sur(?<!\w...)pass|trespass|tokeni[sz]|token recognition error"
    r"|oauth\.token, without producer|oauth\.token: [\w.]{1,99}:[\w.]{1,99}: there is no |sasl\.password right\Z"
    # What brokers answer, as librdkafka says it.
    r"|invalid username or password(?!\s*[:=]|\s*\((?!after )| is)|due to invalid credentials(?!\s*[:=(])"
    r"|delegation token\b|jsontoken|start_object token|start_array token|end_object token|end_array token"
    r"|extra input '[a-z_<>]{1,32}'|mismatched input '[a-z_<>]{1,32}'|missing '[a-z_]{1,32}'|at or near '[a-z_]{1,32}'"
    r"|unexpected token '[^\w\s]{1,3}'|unexpected_token\]|wrong_num_token\]|aes_key_length\]"
    r"|password[-_.]?(?:file|callable|command)\b(?!\s*[=:]\s*['\"])"
    r"|abfs(?<!\w....)s?://[\w.-]+@|wasb(?<!\w....)s?://[\w.-]+@|adl(?<!\w...)://[\w.-]+@|oci(?<!\w...)://[\w.-]+@"
    r"|/0x[0-9a-f]+@[0-9a-f]"
    # A file or directory, where what is said of it follows and no value.
    r"|/secrets?(?=/[\w.-]|\.(?:conf|properties|json|ya?ml|toml|xml|ini|env|txt|jks|p12)\b)(?=[\w./+-]{0,200}[\"')\]]{0,2}"
    rf"(?:[:,;]? (?:{_OF_FILES})\b|[.]?\s{{0,8}}\Z))"
)
_HARMLESS_HINTS: Final = ("pass", "token", "credentials", "://", "length]", "0x", "/secret")
_BOUND: Final = r"(?:[\]\"'`>)\s\\]{0,8}(?::?=|[-=]>|:(?![:/])|\||,\s*[\"'\\])|[ \t]*\\*[\"'(])"
_BEGINS: Final = {size: rf"(?<![a-z]{'.' * size})" for size in (3, 4)}
_APART: Final = {size: rf"(?:(?<![a-z]{'.' * size})|(?<=\\[nrt]{'.' * size}))" for size in (2, 4)}
_NO_MORE: Final = "(?![a-z])"
_IN_QUERIES: Final = "(?:key|code|sign|sid|session|sessionid|jsessionid|hmac|hash|pw)="
_OF_LOGINS: Final = (
    "(?:fail|err|server|service|method|type|mode|scheme|mechanism|provider|plugin|module|is|was|has|in|for|to|with|and|or"
    "|by|not|required)"
)
_NAMED: Final = re.compile(  # a secret's name only where a value follows, and hashes of passwords
    rf"pw{_NO_MORE}(?:{_BOUND}|{_APART[2]}\s\S)|keytab (?:for|of) [^\s:=]{{1,64}}\s{{0,4}}[:=]"
    rf"|auth{_NO_MORE}(?:{_BOUND}|{_APART[4]}\s(?!{_OF_LOGINS})[\w.@/+-]{{1,64}}\s{{1,4}}\S)|pass{_NO_MORE}(?:{_BOUND}|(?<=[a-z_.-]....)|(?=:\S))"
    rf"|pin{_BEGINS[3]}(?: is\b|{_NO_MORE}{_BOUND})|otp{_NO_MORE}{_BOUND}|sas{_BEGINS[3]}{_NO_MORE}{_BOUND}"
    rf"|sig{_BEGINS[3]}{_NO_MORE}{_BOUND}|jwt(?:\.|{_BOUND})|psk{_BEGINS[3]}\b|creds?{_NO_MORE}{_BOUND}"
    rf"|assertion{_BOUND}|salt{_BEGINS[4]}=|pepper=|nonce=|seed{_BEGINS[4]}:|cvv{_BOUND}|refresh=|hub-signature"
    rf"|signature[\"'`\\]{{0,4}}\s{{0,8}}(?:[-=]>|=|[\"'`]\s{{0,8}}:)|sess(?:ion)?[-_.]?id{_NO_MORE}{_BOUND}|connect\.sid"
    rf"|\?{_IN_QUERIES}|&(?:amp;)*{_IN_QUERIES}|;{_IN_QUERIES}|#{_IN_QUERIES}|code=[^\s&]+&(?:amp;)*state=|license\s?[=:]\s"
    r"|aes_encrypt\s{0,8}\(|aes_decrypt\s{0,8}\(|des_encrypt\s?\(|crypt\s?\(|openrowset\s?\(|linkedsrvlogin|encrypt_string"
    r"|x-[a-z-]{0,20}(?:key|auth|session)\b|keystring|key-string|server key\b|snmp-server"
    r"|:\d{2,5}:[^:\s]{1,64}:[^:\s]{1,64}:\S|:\*:[^:\s]{1,64}:[^:\s]{1,64}:\S|//[\w.%-]{1,64}:[ \t\r]*\n"
    r"|basic\s+(?=[a-z+/_=-]{0,200}[0-9=])[a-z0-9+/_=-]{6}|negotiate\s+\S{8}|ntlm\s+\S{8}|digest[\s:]\s*\w+[=:]"
    r"|\|\s?sudo\b|\|\s?kinit\b|sudo -s\b|<<<|<<[-~]?[\\\"']{0,4}[a-z_]"
    r"|<<[-~]?\s{1,4}[\\\"']{0,4}[a-z_]\w{0,32}[\\\"']{0,4}(?:\s{0,4}\n|\\+[nr])|pbkdf2|\{ssha|\{sha|\$2[abxy]?\$|\$[156]\$|\$apr1\$|\$argon2"
    r"|scram-sha-\d{1,3}\$"
)
_GAP: Final = r"(?: |%(?:25)*20)(?=\S)"
_SHAPES: Final = re.compile(
    rf"AUTH{_GAP}|LOGIN{_GAP}|IDENTIFY{_GAP}|AUTHENTICATE{_GAP}|PASS{_GAP}"
    rf"|SASL{_GAP}(?!(?:[A-Z0-9-]{{4,16}} mechanism|authentication) [a-z]|mechanism [A-Z])"
    rf"|CONN{_GAP}|EAP{_GAP}|ACL{_GAP}SETUSER"
    r"|AKIA[A-Z0-9]{12}|ASIA[A-Z0-9]{12}|ABIA[A-Z0-9]{12}|ACCA[A-Z0-9]{12}|AIza[\w-]{10}|ya29\.|1//0[\w-]{10}|GOCSPX-"
    r"|gh[pousr]_\w{10}|github_pat_|gl[a-z]{2,5}-[\w-]{10}|xox[a-z]-|xapp-\d|hooks\.slack\.com/|dapi[0-9a-f]{32}"
    r"|dkea[0-9a-f]{32}|dose[0-9a-f]{32}|discord\.com/api/webhooks|discordapp\.com/api/webhooks|webhook\.office\.com/"
    r"|outlook\.office\.com/webhook|outlook\.office365\.com/webhook|logic\.azure\.com|bot\d{8,10}[:%]|eyJ[\w-]{10}"
    r"|M[\w-]{23,25}\.[\w-]{6}\.|N[\w-]{23,25}\.[\w-]{6}\.|O[\w-]{23,25}\.[\w-]{6}\.|whsec_|dckr_|ATATT3|ATCTT3|ATBB[\w-]{10}"
    r"|sk(?<![\w-]..)[-_](?=[\w-]{12})|pk(?<![\w-]..)[-_](?=[\w-]{12})|rk(?<![\w-]..)[-_](?=[\w-]{12})|npm_\w{10}"
    r"|pypi-[\w-]{10}|hv[sbr]\.[\w-]{10}|SG(?<!\w..)\.[\w-]{10,}\.|hf_[A-Za-z0-9]{10}|do[opr]_v1_|shp[acs][ats]_|PMAK-|glsa_"
    r"|glc_\w{8}|lin_api_|secret_\w{10}|ntn_\w{10}|figd_|sbp_|pscale_|dp\.pt\.|dp\.st\.|dp\.sa\.|NRAK-|NRII-|EAACEdEose"
    r"|AGE-SECRET|sq0[a-z]{3}-|AKCp\w{10}|key-[0-9a-f]{32}|-----BEGIN |---- BEGIN |PuTTY-User-Key|Private-Lines|AQICAH"
    r"|user(?:=|\W\S{1,8}?)\w{1,64}%|FlyV1 |tfp_\w{10}|rubygems_|AC(?<!\w..)[0-9a-f]{32}|SK(?<!\w..)[0-9a-f]{32}"
)
_LINE_WITH_AT: Final = re.compile(r"(?m)^[^\n@]*@[^\n]*")
_SLASHES: Final = re.compile(r"/[\\]*/")
_USER_INFO: Final = re.compile(r"(?<![^\s@])(?=[^\s@]*[:/\\%])[^\s@]+@(?=[^\s@])")
_COMMANDS: Final = word_set("""
    sshpass mysql mariadb redis-cli curl wget docker podman nerdctl sqlplus sqlldr sqlcmd bcp isql osql tsql
    psql mongo ldap smbclient beeline cqlsh zip unzip 7z rar openssl keytool gpg az xfreerdp mosquitto ipmitool
    influx snmp ftp lftp ncftp rclone net htpasswd vault clickhouse trino presto impala-shell sqoop exp imp
    rsync ansible kinit aws gcloud kubectl helm npm twine git svn nmcli pdftk qpdf vncviewer rdesktop
    valkey-cli rediscli rpcclient mount.cifs http https httpie tnsping dbaccess restic db2 airflow plink pscp putty
    psexec schtasks sbt
""")
_COMMAND: Final = re.compile(pattern_of(sorted(_COMMANDS), "") + r"[\w-]{0,20}(?:\.exe)?[\s\"',\\]")
_ESCAPED_ENDS: Final = frozenset(["\\n", "\\r", "\\t"])
_FLAG: Final = re.compile(
    r"[\s\"',](?:[-/][a-z]{0,3}?[pauwkxbe]|--(?:[a-z-]{0,9}user|auth|cert|value)\b)|[\s,]user(?:id)?=|\spass:|\susing\s|<\("
    r"|\s[\w.]{1,64}/[^\s/\"'<]+(?=[\s\"'<]|\Z)"
)
FRAME: Final = re.compile(r"(?m)^[ \t]+at (?:[\w$]+[./])+[\w$<>]+\([\w$. ]{1,80}(?::\d{1,6})?\)[ \t]*$")
_UNCERTAIN: Final = re.compile(r"[^A-Za-z\s,.:;()\[\]{}$_+>-]")
_WORDS: Final = re.compile(r"\s*(?:[A-Za-z]+(?:[-'][A-Za-z]+)*[,.]?[ \t]+)*(?:[A-Za-z]+(?:[-'][A-Za-z]+)*[,.:]?\s*)?")
_BLANK: Final = re.compile(r"\n[ \t\r\f\v]*\n")
_COLONS: Final = (":", ":\r", "&#58;", "&#x3a;", "&#x3A;", "&colon;", "%3a", "%3A", "\\u003a", "\\u003A")
_VISIBLE: Final = re.compile(r"\w")
Place = tuple[int, int]
"""Where a secret is named or recognised, and until where the text may be shown."""


def has_secret(text: str) -> bool:
    """Whether a secret is named or recognised in the text."""
    folded = fold(text)
    return folded is None or next(_places(text, folded, None), None) is not None


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
    for count, (start, end) in enumerate(_hidden_parts(read, _places(read, folded, custom))):
        if start >= KEPT:
            break
        frames = FRAME.findall(read, start, end) if count < _MOST_PARTS else ()
        pieces += (read[done:start], REDACTED, *(f"\n{frame}" for frame in frames))
        done = end if count < _MOST_PARTS else len(read)
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
        if _VISIBLE.search(text, at, blank.start()) and not text.endswith(_COLONS, at, blank.start()):
            return blank.start()
    return len(text)


def _places(text: str, folded: Folded, custom: re.Pattern[str] | None) -> Iterator[Place]:
    """All places, from left to right. Each way to find some reads the text once."""
    return merge(_places_by_shape(text, custom), _places_in(folded))


def _places_by_shape(text: str, custom: re.Pattern[str] | None) -> Iterator[Place]:
    shapes = _starts(_SHAPES, text)
    if custom is None:
        return shapes
    return merge(shapes, (found.span() for found in _NAME.finditer(text) if custom.search(found.group())))


def _places_in(folded: Folded) -> Iterator[Place]:
    seen, places = folded
    if any(hint in seen for hint in _HARMLESS_HINTS):
        seen = _HARMLESS.sub(_filler, seen)
    names: Iterator[Place] = (found.span() for found in strong_names(is_ascii=seen.isascii()).finditer(seen))
    ways = [names, _starts(_NAMED, seen), _commands(seen)]
    if "@" in seen:
        ways += [_user_infos(seen), _starts(_USER_INFO, seen)]
    return ((places[start], places[end - 1] + 1 if end > start else places[start]) for start, end in merge(*ways))


def _starts(pattern: re.Pattern[str], text: str) -> Iterator[Place]:
    """Of what is found nothing is shown."""
    return ((found.start(), found.start()) for found in pattern.finditer(text))


def _filler(found: re.Match[str]) -> str:
    return "~" * len(found.group())


def _user_infos(seen: str) -> Iterator[Place]:
    """Addresses that an `@` follows somewhere in their line, since passwords may hold anything."""
    for line in _LINE_WITH_AT.finditer(seen):
        slashes = _SLASHES.search(seen, line.start(), seen.rfind("@", line.start(), line.end()))
        if slashes:
            yield slashes.start(), slashes.start()


def _commands(seen: str) -> Iterator[Place]:
    """Commands that take a password by a flag which doesn't say so."""
    done = 0
    for command in _COMMAND.finditer(seen):
        start = command.start()
        if start >= done and (not seen[start - 1 : start].isalnum() or seen[start - 2 : start] in _ESCAPED_ENDS):
            blank = _BLANK.search(seen, command.end())
            done = blank.start() if blank else len(seen)
            flag = _FLAG.search(seen, command.end() - 1, done)
            if flag:
                yield flag.start(), flag.start()
