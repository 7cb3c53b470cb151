"""Where a secret is named or recognised in a folded text: names, logins, flags of commands, tokens, user-info."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from heapq import merge
from typing import Final

from headwater.events.redaction._folding import Folded, any_of, lazy, word_set
from headwater.events.redaction._names import WEAK, strong_names

Place = tuple[int, int]
"""Where a secret is named or recognised, and until where the text may be shown."""
_NAME: Final = lazy(r"[\w.-]{1,256}")

# These are for folded texts in lower case.

_FILE_SAID: Final = (
    "no|not|is|isn't|has|names|can|can't|cannot|could|couldn't|failed|permission|access|there|doesn't|does|was|and|for"
)
# Words that hold a secret's name and are none. The last is of a file, and says what is the matter with it.
_HARMLESS: Final = lazy(
    any_of(
        r"""
    tokeni[sz]  token recognition error  delegation token\b  jsontoken  start_(?:object|array) token
    end_(?:object|array) token  extra input '[a-z_<>]{1,32}'  mismatched input '[a-z_<>]{1,32}'  missing '[a-z_]{1,32}'
    at or near '[a-z_]{1,32}'  unexpected token '[^\w\s]{1,3}'  unexpected_token\]  wrong_num_token\]  aes_key_length\]
    password[-_.]?(?:file|callable|command)\b(?!\s*[=:]?\s*['"])  no password supplied  /0x[0-9a-f]+@[0-9a-f]
    webhook-allowed-(?:origin|rate)\b(?!\s*[=:])
    invalid credentials with sasl mechanism [a-z0-9-]{1,20}(?![\w:=-])
    producer\.sasl\.username and producer\.sasl\.password(?![\w.-]|\s*[:='"])
    abfss?://[\w.-]+@  wasbs?://[\w.-]+@  adl://[\w.-]+@  oci://[\w.-]+@
    """,
        *(name + r"[-_.](?:file|callable|variable)\b(?!\s*[=:]?\s*['\"])" for name in ("token", "secret")),
        r"/secrets?(?=/[\w.-]|\.(?:conf|properties|json|ya?ml|toml|xml|ini|env|txt|jks|p12)\b)"
        rf"(?=[\w./+-]{{0,200}}[\"')\]]{{0,2}}(?:[:,;]? (?:{_FILE_SAID})\b|[.]?\s{{0,8}}\Z))",
    )
)
_HARMLESS_HINTS: Final = ("token", "password", "sasl", "://", "length]", "0x", "/secret", "secret.", "webhook-")
_VALUE_FOLLOWS: Final = (
    r"(?![a-z])(?:[-_ ](?:code|number|hash))?(?:[\]\"'`>)\s]{0,8}(?::?=|[-=~]>|:(?![:/])|\||,\s*[\"'])"
    r"|(?:\.\w{1,20})?[ \t]*[\"'(>#]|\s(?:is|was|are|in|like)\b)"
)
_OF_LOGINS: Final = (
    r"(?:fail\w*|err\w*|servers?|services?|methods?|type|mode|scheme|mechanisms?|provider|plugin|module|is|was|has|in|for"
    r"|to|with|and|or|by|not|required)\b"
)
_COMMANDS: Final = word_set(r"""
    sshpass mysql\w* mariadb\w* mycli redis-\w+ rediscli valkey-\w+ keydb-cli curl wget httpie https? xh docker podman
    buildah skopeo nerdctl oc helm az twine airflow sqlcmd osql tsql isql bcp mongo\w* cqlsh cbq ksql beeline presto
    trino impala-shell vsql nzsql exaplus influx clickhouse\S{0,9} kadmin ldap\w+ smbclient rpcclient net wbinfo winexe
    psexec crackmapexec nxc evil-winrm rdesktop xfreerdp ipmitool snmp\w+ mosquitto_\w+ ftp sftp lftp ncftp\w* useradd
    usermod openssl keytool certutil dotnet nuget restic zip unzip 7z\w? rar unrar arj mutool qpdf etcdctl mount\S{0,5}
""")
"""Those that take a password, or a user with one, by a short flag."""
_NO_PART: Final = r"(?<![\w.-].)(?:{})"
_SHORT_FLAG: Final = r"(?<=[\s\"',])-(?:[a-z]{0,3}?[pauwkxbe]|o\s+user=)"
_FLAG: Final = lazy(_SHORT_FLAG)
_FLAG_OF_COMMAND: Final = lazy(
    rf"(?:{any_of(*sorted(_COMMANDS), rest=_NO_PART)})(?:\.exe)?(?=[\s\"',])"
    rf"(?:[^\n]*?(?:\n[ \t][^\n]*?)*?({_SHORT_FLAG})|[^\n]*(?:\n[ \t][^\n]*)*)"
)
_NAMED: Final = lazy(
    any_of(
        *(word + _VALUE_FOLLOWS for word in sorted(WEAK)),
        *(rf"{sign}(?:key|code|sign|session|hmac|hash)=" for sign in (r"\?", "&", ";", "#")),
        *(
            rf"{command}\b(?:[^\n]{{0,32}}?[\s\"=])?[\w.]{{1,64}}/[^\s/\"'<]+(?=[\s\"'<]|\Z)"
            for command in ("sqlplus", "sqlldr", "imp", "exp", "impdp", "expdp", "tnsping", "rman", "conn(?:ect)?")
        ),
        rf"auth\s(?!{_OF_LOGINS})[\w.@/+-]{{1,64}}\s{{1,4}}\S",
        r"""
    pass(?![a-z])(?:(?<=[a-z_.-]....)(?<!bypass|ompass|urpass|espass)(?<!by-pass)|(?=:\S))  pw\s\S  psk\s+\w  creds? \w
    keytab (?:for|of) [^\s:=]{1,64}\s{0,4}[:=]  sess(?:ion)?[-_. ]?id\s?[=:]  refresh=  pem\s?=
    code=[^\s&]{1,64}&state=  auth[a-z]{0,20}\(["']  auth_?bytes=  login\(["']  !connect \S{1,256} \S{1,64} \S
    host(?:[ ]?name|exception)?:? ["']?[^\s"'@]{1,99}@
    signature["'`]{0,4}\s{0,8}(?:[-=]>|=|["'`]\s{0,8}:|mism|provided>)  invalid signature  hub-signature
    auth [\w.@-]{1,64}[:/]\S  log(?:in|ging in as|ged in as) [\w.@-]{1,64}[:/]\S  on >\S
    basic\s+(?=[a-z+/_=-]{0,200}[0-9=])[\w+/=-]{6}  negotiate\s+\S{8}  ntlm\s+\S{8}  digest[\s:=]\s*\w+[=:]
    x-[a-z-]{0,20}(?:key|auth|session|api)\b  crypt(?:ed)? with  crypt\s?\(  openrowset\s?\(  linkedsrvlogin
    encrypt_string
    pbkdf2  \{(?:s?sha|cipher|noop|bcrypt|md5|crypt)  "md5[0-9a-f]{32}
    \$(?:2[abxy]?|[156y]|apr1|argon2\w{0,2})\$  scram-sha-\d{1,3}\$
    :(?:\d{2,5}|\*):[^:\s]{1,64}:[^:\s]{1,64}:\S  //[\w.%-]{1,64}:[ \t\r]*[\n\v]
    \|\s?(?:sudo|kinit)\b  sudo -s\b  <<<  <<[-~]?[\\"']{0,4}[a-z_]  =<\(
    <<[-~]?\s{1,4}["']{0,4}[a-z_]\w{0,32}["']{0,4}\s{0,4}[\n\v]
    -(?<=[\s"',(\[]-)p(?<!mkdir -p)["']{0,2}[\s=,]\s?["']?(?![\d:.]*/|[\d:.]+(?![\w:.]))[^\s-]
    -(?<=[\s"',(\[]-)u["']{0,2}[\s=,]?\s?["']?[\w.@-]{1,64}:(?!//)\S
    -(?<=[\s"',]-)-(?:[a-z-]{0,16}(?:user|auth|creds|cert)[ =][^\s:]{1,64}:|auth[ =])
    /(?<=\s/)(?:r?p|u(?:ser)?|pass)[:\s]  user=\w{1,64}%  user \S{1,64} (?:using|pass) \s?\S
    """,
        rest="(?={})",  # what is behind is only looked at: another place may begin there
    )
)
_LINE_WITH_AT: Final = lazy(r"(?m)^[^\n@]*@[^\n]*")
_USER_INFO: Final = lazy(r"(?<![^ \t\r\n@])(?=[^ \t\r\n@]*[:/\\%])[^ \t\r\n@]+@(?=[^\s@])")

# These are for folded texts with their capitals.

_LOGINS: Final = lazy(
    any_of(
        r"""
    AUTH (?=\S)  LOGIN (?=\S)  IDENTIFY (?=\S)  AUTHENTICATE (?=\S)  PASS (?=\S)  CONN (?=\S)  EAP (?=\S)  ACL SETUSER
    ENC\((?=\S)  SASL PLAIN (?![a-z]{4})  _KEY(?=["' ]{0,2}[:=])
    """
    )
)
BEGINNINGS: Final = sorted(
    word_set(r"""
    gh[pousr]_ github_pat_ gl[a-z]{2,5}- xox[a-z]- xapp- sk[-_](?:live|test|proj|ant|svcacct|admin|or)[-_]
    pk[-_](?:live|test)[-_] rk[-_](?:live|test)[-_] whsec_ dckr_ AT[AC]TT3 ATBB npm_ pypi- hv[sbr]\. SG\. hf_
    do[opr]_v1_ shp[acs][ats]_ PMAK- glsa_ glc_ lin_api_ ntn_ figd_ sbp_ pscale_ dp\.(?:pt|st|sa)\. NR(?:AK|II)-
    EAACEdEose sq0[a-z]{3}- AKCp tfp_ rubygems_ AIza ya29\. 1//0 GOCSPX- AQICAH eyJ
""")
)
"""How the tokens of services begin."""
AWS: Final = "A(?:KIA|SIA|BIA|CCA)"
DATABRICKS: Final = r"d(?:api|kea|ose)[0-9a-f]{32}"
_TOKENS: Final = lazy(
    any_of(
        *(rf"{beginning}(?=[\w-]{{8}})" for beginning in BEGINNINGS),
        rf"{AWS}(?=[A-Z0-9]{{12}})",
        DATABRICKS,
        r"""
    key-(?=[0-9a-f]{32})  sk-(?=[A-Za-z0-9]{16})  hooks\.slack\.com/  logic\.azure\.com  bot(?=\d{8,10}:)  FlyV1 (?=\S)
    -----BEGIN (?=\S)  ---- BEGIN (?=\S)  PuTTY-User-Key  Private-Lines
    """,
    )
)
_RUN: Final = lazy(r"[A-Za-z0-9+/_-]{20,}")
_CHUNK: Final = lazy(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SHORTEST_WORDS: Final = 3
_OF_KAFKA: Final = ("cluster ", "cluster, ", "cluster (", "cluster.id names ")
"""What stands before the id of a cluster, which is as random as a token and no secret."""
_OF_CLUSTER: Final = 22


def places(folded: Folded, custom: re.Pattern[str] | None) -> Iterator[Place]:
    """All places, from left to right. Each way to find some reads the text once."""
    text, origins = folded
    seen = text.lower()
    if any(hint in seen for hint in _HARMLESS_HINTS):
        seen = _HARMLESS.sub(lambda found: "~" * len(found.group()), seen)
    starts: list[Iterator[int]] = [
        _tokens(text),
        _random_runs(text),
        _starts(_LOGINS, text),
        _starts(_NAMED, seen),
    ]
    if _FLAG.search(seen):
        starts.append(found.start(1) for found in _FLAG_OF_COMMAND.finditer(seen) if found[1])
    if "@" in seen:
        starts += [_addresses(seen), _starts(_USER_INFO, seen)]
    ways: list[Iterable[Place]] = [strong_names(seen), *(((at, at) for at in each) for each in starts)]
    if custom is not None:
        ways.append(found.span() for found in _NAME.finditer(text) if custom.search(found.group()))
    return ((origins[start], origins[end - 1] + 1 if end > start else origins[start]) for start, end in merge(*ways))


def _starts(pattern: re.Pattern[str], text: str) -> Iterator[int]:
    return (found.start() for found in pattern.finditer(text))


def _tokens(text: str) -> Iterator[int]:
    return (start for start in _starts(_TOKENS, text) if not text[start - 1 : start].isalnum())


def _addresses(seen: str) -> Iterator[int]:
    """Those that an `@` follows somewhere in their line, since passwords may hold anything."""
    for line in _LINE_WITH_AT.finditer(seen):
        start = seen.find("//", line.start(), seen.rfind("@", line.start(), line.end()))
        if start >= 0:
            yield start


def _random_runs(text: str) -> Iterator[int]:
    for found in _RUN.finditer(text):
        run, start = found.group(), found.start()
        is_of_kafka = len(run) == _OF_CLUSTER and text.endswith(_OF_KAFKA, max(0, start - _OF_CLUSTER), start)
        if looks_random(run) and not is_of_kafka:
            yield start


def looks_random(run: str) -> bool:
    """Whether capitals, small letters and digits change as nobody writes them: `aB3xK9`, not `Utf8ToDecimal`."""
    return (
        not (run.isupper() or run.islower())
        and any(map(str.isdigit, run))
        and len(run) < _SHORTEST_WORDS * len(_CHUNK.findall(run))
    )
