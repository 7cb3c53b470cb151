"""No planted secret comes through, wherever and however it is written, and what stands around it does."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headwater.events.base import Model, StringMap
from headwater.events.redaction import Redactor, redact
from tests.kit.effort import examples
from tests.kit.secret_forms import GROUPS, MARK, texts

pytestmark = pytest.mark.slow

RECOGNISABLE = 6

# Neither words nor marks hold eight of these in a row, so that a hit is a leak and never a coincidence.
CORES = st.text(st.sampled_from("QZXJ7943qzxjVK"), min_size=8, max_size=24)
JOINTS = st.sampled_from(["", "-", "+", "/", ".", "~", "!", "*", "$", "%25", "^", "_", "="])
INSIDE_QUOTES = st.sampled_from(
    ["'", '"', "\\", " ", ", ", "; ", "\n", ")", "}", "'; x='", '", "y": "', "=", "&z=", "@", ":"]
)
QUOTED_CORES = st.lists(CORES, min_size=1, max_size=3)


@st.composite
def bare_secrets(draw: st.DrawFn) -> str:
    return draw(JOINTS).join(draw(st.lists(CORES, min_size=1, max_size=3))) if draw(st.booleans()) else draw(CORES)


@st.composite
def wild_secrets(draw: st.DrawFn) -> str:
    """Secrets with quotes, spaces and line ends, for the forms that can carry these."""
    return draw(INSIDE_QUOTES).join(draw(QUOTED_CORES))


NAMES = st.sampled_from(
    [
        "password", "secret", "token", "api_key", "accessKey", "fs.s3a.secret.key", "spark.ssl.keyPassword", "db.pwd",
        "AWS_SECRET_ACCESS_KEY", "client_secret", "passphrase", "sasToken", "private-key", "credential",
        "fs.azure.account.key.a.dfs.core.windows.net",
    ]
)  # fmt: skip
Form = Callable[[str, str], str]

BARE_FORMS: list[Form] = [
    lambda name, secret: f"{name}={secret}",
    lambda name, secret: f"{name} = {secret}",
    lambda name, secret: f"{name}: {secret}",
    lambda name, secret: f"Map(url -> u, {name} -> {secret}, user -> joe)",
    lambda name, secret: f"{{user=joe, {name}={secret}, x=y}}",
    lambda name, secret: f"[{name}={secret}]",
    lambda name, secret: f"<{name}>{secret}</{name}>",
    lambda name, secret: f"<name>{name}</name>\n<value>{secret}</value>",
    lambda name, secret: f"run --{name} {secret} --user joe",
    lambda name, secret: f"run --{name}={secret}",
    lambda name, secret: f"-D{name}={secret}",
    lambda name, secret: f"SET {name}={secret};",
    lambda name, secret: f"https://host/path?user=joe&{name}={secret}&x=y",
    lambda name, secret: f"jdbc:sqlserver://h:1433;user=sa;{name}={secret};encrypt=true",
    lambda name, secret: f"jdbc:postgresql://h/d?{name}={secret}",
    lambda name, secret: f"jdbc:mysql://address=(host=h)({name}={secret})(user=joe)/d",
    lambda _name, secret: f"https://joe:{quote(secret, safe='')}@host:80/path",
    lambda _name, secret: f"https://{quote(secret, safe='')}@host/path",
    lambda _name, secret: f"mongodb://joe:{quote(secret, safe='')}@h1:1,h2:2/d",
    lambda _name, secret: f"jdbc:oracle:thin:scott/{secret}@host:1521:sid",
    lambda _name, secret: f"CREATE USER joe IDENTIFIED BY {secret};",
    lambda _name, secret: f"Authorization: Bearer {secret}",
    lambda _name, secret: f"Authorization: Basic {base64.b64encode(b'joe:' + secret.encode()).decode()}",
    lambda _name, secret: f"Proxy-Authorization: Digest username=\"joe\", response=\"{secret}\"",
    lambda _name, secret: f"https://a.blob.core.windows.net/c?sv=2020-08-04&sp=rl&sig={quote(secret, safe='')}",
    lambda _name, secret: f"AccountName=a;AccountKey={secret}==;EndpointSuffix=core.windows.net",
    lambda _name, secret: f"https://b.s3.amazonaws.com/k?X-Amz-Credential={secret}&X-Amz-Signature={secret}&X-Amz-Date=1",
    lambda _name, secret: f"-----BEGIN PRIVATE KEY-----\n{secret}\n-----END PRIVATE KEY-----",
]  # fmt: skip
QUOTED_FORMS: list[Form] = [
    lambda name, secret: json.dumps({name: secret, "user": "joe"}),
    lambda name, secret: json.dumps({"outer": json.dumps({name: secret, "user": "joe"})}),
    lambda name, secret: json.dumps([json.dumps({"outer": json.dumps({name: secret})})]),
    lambda name, secret: f"OPTIONS (url 'u', {name} {sql(secret)}, user 'joe')",
    lambda name, secret: f"OPTIONS (`{name}` = {sql(secret)}, user 'joe')",
    lambda name, secret: f"TBLPROPERTIES ('{name}' = {sql(secret)}, 'primary-key' = 'id')",
    lambda name, secret: f"OPTIONS ({name} {backslashed(secret)}, user 'joe')",
    lambda name, secret: f"{{'{name}': {backslashed(secret)}, 'user': 'joe'}}",
    lambda name, secret: f'conf.set("{name}", {json.dumps(secret)})',
    lambda name, secret: f"module required username=\"joe\" {name}={json.dumps(secret)};",
    lambda _name, secret: f"CREATE USER joe IDENTIFIED BY {sql(secret)}",
    lambda _name, secret: f"ALTER USER joe WITH PASSWORD {sql(secret)}",
]  # fmt: skip
SURROUNDINGS: list[Callable[[str], str]] = [
    lambda text: text,
    lambda text: f"java.lang.RuntimeException: failed to open {text}\n\tat org.apache.spark.Foo.bar(Foo.scala:12)",
    lambda text: json.dumps({"message": text, "level": "ERROR"}),
    lambda text: f"Caused by: {text}; see the log",
    lambda text: f"the note {sql(text)} was refused",
    lambda text: f"first line\n{text}\nlast line",
]  # fmt: skip


def sql(text: str) -> str:
    """As a literal in SQL; a backslash before the end would be ambiguous in any dialect."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def backslashed(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def pieces(secret: str) -> list[str]:
    """What of a secret may be recognised: six letters of it in a row, also in base64."""
    kept = "".join(char if char in "QZXJ7943qzxjVK" else " " for char in secret)
    return [word[at : at + RECOGNISABLE] for word in kept.split() for at in range(len(word) - RECOGNISABLE + 1)]


def leaks(secret: str, text: str) -> list[str]:
    return [piece for piece in pieces(secret) if piece in text]


@st.composite
def planted(draw: st.DrawFn) -> tuple[str, str]:
    if draw(st.booleans()):
        secret, form = draw(bare_secrets()), draw(st.sampled_from(BARE_FORMS))
    else:
        secret, form = draw(wild_secrets()), draw(st.sampled_from(QUOTED_FORMS))
    return secret, draw(st.sampled_from(SURROUNDINGS))(form(draw(NAMES), secret))


@settings(max_examples=examples(300), deadline=None)
@given(planted())
def test_no_planted_secret_comes_through_and_other_paragraphs_do(plant: tuple[str, str]) -> None:
    secret, text = plant
    redacted = redact(f"harmless before\n\n{text}\n\nharmless after")
    assert leaks(secret, redacted) == []
    assert redacted.startswith("harmless before\n\n")
    assert redacted.endswith("\n\nharmless after")


ENCODERS: st.SearchStrategy[Callable[[str], str]] = st.sampled_from(
    [
        json.dumps,
        html.escape,
        quote,
        lambda text: "".join(f"&#{ord(char)};" if char in "=:@'\"" else char for char in text),
        lambda text: "".join(f"\\u{ord(char):04x}" if char in "aesp" else char for char in text),
        str.upper,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("o", "\u043e").replace("a", "\u0430"),
        lambda text: text.replace("s", "s\u200b"),
    ]
)


@st.composite
def composed(draw: st.DrawFn) -> tuple[str, str]:
    """One or two of the forms of `secret_forms.txt`, surrounded and escaped again and again."""
    secret = draw(st.text(st.sampled_from("QZXJ7943"), min_size=12, max_size=20))
    forms = draw(st.lists(FORMS, min_size=1, max_size=2))
    text = draw(st.sampled_from(JOINTS_OF_FORMS)).join(forms).replace(MARK, secret)
    steps: list[Callable[[str], str]] = draw(st.lists(ENCODERS | st.sampled_from(SURROUNDINGS), max_size=3))
    for step in steps:
        text = step(text)
    return secret, text


FORMS = st.sampled_from(sorted(set(texts()) - set(GROUPS["tokens"])))
JOINTS_OF_FORMS = ["\n", " ", "; ", "\n\n", ", "]


@settings(max_examples=examples(500), deadline=None)
@given(composed())
def test_no_composed_form_gives_its_secret_away(plant: tuple[str, str]) -> None:
    secret, text = plant
    assert secret in text
    assert leaks(secret, redact(text)) == []


@settings(max_examples=examples(100), deadline=None)
@given(planted())
def test_redacting_again_changes_nothing(plant: tuple[str, str]) -> None:
    once = redact(plant[1])
    assert redact(once) == once


class Leaf(Model):
    text: str
    number: int = 7


class Tree(Model):
    text: str = ""
    options: StringMap = StringMap()
    leaves: tuple[Leaf, ...] = ()
    children: tuple[Tree, ...] = ()
    maybe: Leaf | None = None


def trees(texts: st.SearchStrategy[str]) -> st.SearchStrategy[Tree]:
    leaves = st.builds(Leaf, text=texts)
    options = st.dictionaries(st.sampled_from(["a", "b", "c"]), texts, max_size=2).map(StringMap)
    flat = st.builds(Tree, text=texts, options=options, leaves=st.lists(leaves, max_size=2).map(tuple), maybe=leaves)
    return st.recursive(
        flat, lambda inner: st.builds(Tree, text=texts, children=st.lists(inner, max_size=2).map(tuple)), max_leaves=4
    )


@settings(max_examples=examples(50), deadline=None)
@given(st.data())
def test_no_secret_comes_through_in_any_field_of_a_model(data: st.DataObject) -> None:
    plants: list[tuple[str, str]] = []

    def remembered(plant: tuple[str, str]) -> str:
        plants.append(plant)
        return plant[1]

    tree = data.draw(trees(planted().map(remembered)))
    shown = redact(tree).model_dump_json()
    assert [leaks(secret, shown) for secret, _ in plants if leaks(secret, shown)] == []


@settings(max_examples=examples(50), deadline=None)
@given(NAMES, wild_secrets(), bare_secrets(), st.integers(0, 4))
def test_no_secret_comes_through_in_nested_maps(name: str, secret: str, bare: str, depth: int) -> None:
    value: Any = {name: secret, "primary-key": "id", "list": [f"{name}={bare}"]}
    for level in range(depth):
        value = {"level": value} if level % 2 else [value, {"primary-key": "id"}]
    shown = json.dumps(redact(value))
    assert leaks(secret, shown) + leaks(bare, shown) == []
    assert '"primary-key": "id"' in shown


FRAGMENTS = st.sampled_from(
    [
        "password", "secret.key", "=", ": ", " -> ", "'", '"', "\\", "\\\"", "''", '""', " ", "\n", ",", ", ",
        ";", "&", "(", ")", "{", "}", "[", "]",
        "<password>", "</password>", "://", "@", "/", "?", "#", "x", "user", "hunter22", "Authorization",
        "Bearer ", "Basic ", "Digest a=b", "--token ",
        "identified by ", "SET ", "jdbc:oracle:thin:", "-----BEGIN X-----", "-----END X-----",
        "AKIAABCDEFGHIJKLMNOP", "eyJhbGciOi.a.b", "|", "%3D", "%26",
        "*********(redacted)", "Map(", "null", "12", ".", "access key", "curl -u a:b", "\\n", "sig", "Cookie",
        "concat(", "||", "host:80",
    ]
)  # fmt: skip


@settings(max_examples=examples(500), deadline=None)
@given(st.lists(FRAGMENTS, max_size=12).map("".join))
def test_any_text_is_taken_and_twice_is_once(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@given(st.text(max_size=200))
def test_any_characters_are_taken(text: str) -> None:
    assert isinstance(redact(text), str)


TABLE_NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,12}(\.[a-z][a-z0-9_]{0,12}){0,3}", fullmatch=True)


@given(
    TABLE_NAMES,
    st.sampled_from(
        ["{}", "s3://bucket/{}/day=2024-01-01", "jdbc:postgresql://host:5432/{}", "`{}`", "SELECT * FROM {}"]
    ),
)
def test_names_and_places_stay_as_they_are(name: str, place: str) -> None:
    assume(not Redactor().is_secret(name))
    text = place.format(name)
    assert Redactor().text(text) is text
