"""What stays of a free text and what goes. Forms are in `secret_forms.txt`, errors of Spark in `spark_errors.txt`."""

from __future__ import annotations

import base64
import html
import json
from pathlib import Path
from urllib.parse import quote

import pytest

from headwater.events.redaction import REDACTED, Redactor, canonical_text, redact
from tests.kit.secret_forms import BINDINGS, GROUPS, MARK, NAMES, texts

SECRET = "Zq7xV9kLmW3pR"
SECRETS = (SECRET, f"{SECRET}-+{SECRET}", f"{SECRET}!*~^{SECRET}", f"a'{SECRET}", f'a"{SECRET}', f"a b {SECRET}")
ERRORS = Path(__file__).with_name("spark_errors.txt").read_text(encoding="utf-8").rstrip("\n").split("\n%%\n")


def shows(secret: str, text: str) -> bool:
    return any(secret[at : at + 6] in text for at in range(len(secret) - 5))


def leaks(forms: list[str], secret: str) -> list[str]:
    planted = [form.replace(MARK, secret) for form in forms if MARK in form]
    assert planted
    return [text for text in planted if shows(SECRET, redact(text))]


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("secret", SECRETS[:3])
def test_no_form_gives_its_secret_away(group: str, secret: str) -> None:
    assert leaks(list(GROUPS[group]), secret if group != "tokens" else SECRET) == []


@pytest.mark.parametrize("secret", SECRETS)
def test_no_name_of_a_secret_gives_it_away_however_it_is_bound(secret: str) -> None:
    forms = [binding.format(name, MARK, name) for name in NAMES for binding in BINDINGS]
    assert leaks(forms, secret) == []


@pytest.mark.parametrize(
    "around",
    [
        "{}\n\tat org.apache.spark.Foo.bar(Foo.scala:12)", "Caused by: java.lang.RuntimeException: {}",
        "first\n\n{}\n\nlast",
        "the note '{}' was refused", "-- {}", "/* {} */", "<x>{}</x>", "> {}", "\t{}", "é {}",
        pytest.param("x" * 20_000 + "\n{}", marks=pytest.mark.slow, id="far behind"),
    ],
)  # fmt: skip
def test_nor_within_another_text(around: str) -> None:
    assert leaks([around.replace("{}", form) for form in texts()], SECRET) == []


@pytest.mark.slow
def test_nor_escaped() -> None:
    """As a JSON in a JSON, in XML and in a URL."""
    ways = (json.dumps, lambda text: json.dumps(json.dumps(text)), html.escape, quote, lambda text: quote(quote(text)))
    planted = [way(form.replace(MARK, SECRET)) for way in ways for form in texts()]
    assert [text for text in planted if shows(SECRET, redact(text))] == []


def test_the_corpus_is_large() -> None:
    assert sum(map(len, GROUPS.values())) > 600
    assert len(list(texts())) > 1_400
    assert len(ERRORS) >= 200


def test_errors_of_spark_keep_what_they_say() -> None:
    """Real messages of Spark: at least nine of ten characters stay, and nearly all of the messages stay whole."""
    kept = [redact(error).replace(REDACTED, "") for error in ERRORS]
    assert sum(map(len, kept)) >= 0.9 * sum(map(len, ERRORS))
    assert sum(shown == error for shown, error in zip(kept, ERRORS, strict=True)) >= 0.95 * len(ERRORS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"Login failed with password {SECRET} for joe", "Login failed with password§"),
        (f"a.B: no access with user 'joe' and password {SECRET}", "a.B: no access with user §"),
        (f"password={SECRET}", "password§"),
        (f"https://joe:{SECRET}@host/x is down", "§"),
        (f"cannot open https://joe:{SECRET}@host/x", "cannot open §"),
        (f"got AKIAABCDEFGHIJKLMNOP:{SECRET} from", "got §"),
        (f"fails:\n\tat a.b.C.d(E.java:1)\nCaused by: X: bad token {SECRET}\n\tat a.b.C.e(E.java:2)\n\nbye",
         "fails:\n\tat a.b.C.d(E.java:1)\nCaused by: X: bad token§\n\tat a.b.C.e(E.java:2)\n\nbye"),
        (f"first\n\npassword:\n  {SECRET}\nx\n\nlast", "first\n\npassword§\n\nlast"),
        (f"first\n\n<value>{SECRET}</value>\n<name>password</name>\n\nlast", "first\n\n§\n\nlast"),
        (f"-----BEGIN X-----\n\n{SECRET}\n-----END X-----\n\nlast", "§\n\nlast"),
        (f"-----BEGIN X-----\n\n{SECRET}\n\ncut off", "§"),
        (f"Password:\n\n{SECRET}\n\nlast", "Password§\n\nlast"),
        (f"Password&#58;\n\n{SECRET}\n\nlast", "Password§\n\nlast"),
        (f"password={REDACTED}{SECRET}", "password§"),
        ("%70 " * 5_000, "§"),
    ],
)  # fmt: skip
def test_what_is_kept_beside_a_secret(text: str, expected: str) -> None:
    assert redact(text) == expected.replace("§", REDACTED)


@pytest.mark.parametrize(
    "text",
    [
        "orders", "hive_metastore.sales.orders", "s3a://bucket/warehouse/sales.db/orders/day=2024-01-01/part-0.parquet",
        "abfss://container@account.dfs.core.windows.net/warehouse/orders", "wasbs://c@a.blob.core.windows.net/p",
        "oci://sales@ns/t",
        "jdbc:postgresql://host:5432/db?ssl=true", "jdbc:sqlserver://h:1433;databaseName=d;encrypt=true",
        "mail joe@example.com", "key=3/part-0", "/data/key=3/sort_key=4", "primary-key=id, bucket-key=order_id",
        "\tat org.apache.hadoop.security.token.Token.decode(Token.java:136)",
        "java.lang.SecurityException: cannot sign",
        "\tat com.amazonaws.auth.AWSCredentialsProviderChain.getCredentials(AWSCredentialsProviderChain.java:136)",
        "method signature: foo(int)", "the author: Ann; a passenger: Bob; the design: new", "1//2 of 3//4", "",
        'set "spark.sql.ansi.enabled" to "false" to bypass this error',
        "Unexpected token '<'", "token recognition error at: '$'",
        "mismatched input 'password' expecting <EOF>", "Syntax error at or near 'token': extra input 'token'",
        "table t@v12 and t.snapshot_id_123", "1.2.3-SNAPSHOT", "--", "://", "@", "a://b:1/c", "the pins out",
        "spinning: x",
        "python -m pip install '/opt/src/headwater[metrics]'",
        "/usr/bin/python3 -m pip install 'headwater[kafka] @ file:///x'",
        "/etc/spark/secrets/spark.conf: no key begins with spark.headwater.",
        "can't read /run/secrets/kafka.properties",
        "/home/joe/secrets.properties names no listener", "auth failed for joe", "the auth server is down",
        "Login failure for joe from keytab /etc/krb5.keytab", "SELECT 1 << 2",
        "password", "tokenized text", "a compass", "key 'a' and keys: b", "pass the value 5",
        "Basic authentication failed", "due to invalid credentials with SASL mechanism SCRAM-SHA-512 (after 5ms)",
        "java -version", '"java -version" failed: exit code 1', "java -Xmx4g -Xss4m -verbose:gc -ea -cp x.jar Main",
        "spark-submit --master yarn -e x --packages a:b:1 -Dspark.x=y job.py", "python -u -W error -X importtime x.py",
        "javac -proc:none -parameters", "bash -ex x.sh", "set -euo pipefail", "mkdir -p data/x", "nc -p 8080 h",
        "tar -xzf a.tgz", "grep -w word -e x", "the -a option, -b and -e", "ps aux; ps -ef", "unknown option -Xbatch",
        "another cluster, 4L6g3nShT-eMCtK--X86sw, answers there: cluster.id names aN6therOneEntirely0000",
    ],
)  # fmt: skip
def test_what_holds_no_secret_stays_as_it_is(text: str) -> None:
    assert redact(text) is text


def test_twice_is_once() -> None:
    once = [redact(form.replace(MARK, SECRET)) for form in texts()]
    assert [text for text in once if redact(text) != text] == []


@pytest.mark.parametrize("length", [300, 500, 8_000, 12_287, 12_288, 12_295, 13_000, 20_000, 65_536])
def test_a_long_text_is_cut_behind_what_is_secret(length: int) -> None:
    """A password whose `@` lies behind the cut doesn't look like one."""
    for before in range(length - 40, length):
        shown = Redactor().text("x " * (before // 2) + f"https://joe:{SECRET}@host and so on " + "y " * 10_000)
        assert not shows(SECRET, shown)
        assert len(shown) <= 12_288 + len(REDACTED) + 1


def test_basic_credentials_are_found_without_a_header() -> None:
    encoded = base64.b64encode(f"joe:{SECRET}".encode()).decode()
    assert redact(f"sent basic {encoded} to host") == f"sent {REDACTED}"


# Equal shapes have equal texts, different shapes don't.


SAME = [
    ("SELECT a FROM t WHERE b = 5", "SELECT a\n  FROM t -- why\n WHERE b = -17.5"),
    ("a IN (1)", "a IN (1, 2, 3)"),
    ("SELECT * FROM t VERSION AS OF 1", "SELECT * FROM t VERSION AS OF 8924356"),
    ("SELECT * FROM c.db.t.snapshot_id_1", "SELECT * FROM c.db.t.snapshot_id_8924356"),
    ("SELECT * FROM t@v1", "SELECT * FROM t@v17"),
    ("SELECT * FROM t@20240101000000000", "SELECT * FROM t@20250101000000000"),
    ("(name#1 = x#2L)", "(name#71 = x#72L)"),
    ("transform(a#1, lambda x_1#3)", "transform(a#4, lambda x_77#9)"),
    ("scalar-subquery#1 [a#2], [id=#3]", "scalar-subquery#4 [a#5], [id=#6]"),
    ("Exchange hashpartitioning(a#1, 200), X [plan_id=12]", "Exchange hashpartitioning(a#2, 200), X [plan_id=7]"),
    ("_gen_alias_1#2 + _common_expr_0#3", "_gen_alias_22#5 + _common_expr_9#8"),
    ("UDF(Foo@1a2b3c4d, a#1)", "UDF(Foo@5e6f7a8b, a#2)"),
    ("UDF(Foo@1a2b3c4d, a#1)", "UDF(Foo@12345678, a#2)"),
]  # fmt: skip
DIFFERENT = [
    ("SELECT a FROM t", "SELECT b FROM t"),
    ("SELECT a1 FROM t", "SELECT a2 FROM t"),
    ("CAST(a AS decimal(10,2))", "CAST(a AS decimal(10,3))"),
    ("(a#1 = b#2)", "(a#1 > b#2)"),
    ("a IS NULL", "a = 5"),
    ("f(1)", "f(1, 2)"),
    ("a - 5", "a + 5"),
    ("TRUE", "FALSE"),
    ("`a#1`", "`a#2`"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_is_counted_or_typed_in_does_not_matter(one: str, other: str) -> None:
    assert canonical_text(one) == canonical_text(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_is_done_does_matter(one: str, other: str) -> None:
    assert canonical_text(one) != canonical_text(other)


def test_no_id_and_no_literal_is_left() -> None:
    printed = "CASE WHEN (name#12 = 'bob smith') THEN cast(x#13L as decimal(10,2)) ELSE 5 END AS y#14"
    assert canonical_text(printed) == "CASE WHEN (name = ?) THEN cast(x as decimal(10,2)) ELSE ? END AS y"
