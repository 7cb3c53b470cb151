"""What stays and what goes, form by form: `§` is the secret before, and the mark after."""

from __future__ import annotations

import base64

import pytest

from headwater.events.redaction import REDACTED, redact

SECRET = "Zq7xV9kLmW3pR"
BASIC = base64.b64encode(f"joe:{SECRET}".encode()).decode()

PLANTED = r'''
password=§
password = § and more
password: §
"password": "§"
'password': '§', 'user': 'joe'
{"a":{"password":"§","user":"joe"}}
{\"password\": \"§\", \"user\": \"joe\"}
"{\\\"password\\\": \\\"§\\\"}"
"{""password"": ""§"", ""user"": ""joe""}"
<password>§</password><user>joe</user>
<a:password>§</a:password>
<db password="§" user="joe"/>
<property><name>fs.s3a.secret.key</name><value>§</value></property>
Map(url -> u, password -> §, user -> joe)
{user=joe, password=§, dbtable=t}
[user=joe, password=§]
(spark.my.password,§)
('password', '§'), ('user', 'joe')
conf["password"] = "§"
conf.set("spark.my.password", "§")
|fs.s3a.secret.key|§|
spark.x.password      §
export AWS_SECRET_ACCESS_KEY=§
-Djavax.net.ssl.keyStorePassword=§ -Dfoo=bar
cmd --password § --user joe
cmd --db-password=§ --user joe
access key: §
Connection String=§
Login failed with password § for joe
OPTIONS (password '§', "user" = 'joe')
OPTIONS ('password' '§', user 'joe')
OPTIONS (`password` = "§")
TBLPROPERTIES ('fs.s3a.secret.key' = '§', 'primary-key' = 'id')
EXECUTE IMMEDIATE 'OPTIONS(password ''§'', user ''joe'')'
SET spark.hadoop.fs.s3a.secret.key=§; SELECT 1
CREATE USER joe IDENTIFIED BY '§' ACCOUNT LOCK
CREATE USER joe IDENTIFIED BY §;
CREATE USER joe IDENTIFIED WITH mysql_native_password AS '§'
CREATE USER joe WITH PASSWORD '§'
SET PASSWORD FOR joe = PASSWORD('§')
COPY t ACCESS_KEY_ID '§' SECRET_ACCESS_KEY '§' FORMAT csv
https://§@host:80/x?a=b#c
https://§@host/x@v1
jdbc:oracle:thin:§@host:1521:sid
jdbc:oracle:thin:§@//host:1521/svc
jdbc:sqlserver://h:1433;database=d;user=sa;password=§;encrypt=true
jdbc:postgresql://h/db?user=a&password=§&ssl=true
jdbc:mysql://address=(host=h)(password=§)(user=x)/db
jdbc:hive2://h:10000/d;user=joe;password=§
jdbc:teradata://h/USER=joe,PASSWORD=§
jdbc:snowflake://a.snowflakecomputing.com/?user=joe&token=§&warehouse=w
https://api/x?key=§&page=2
https://h/cb#access_token=§&state=5
redirect=x%3Fpassword%3D§%26user%3Djoe
Authorization: §
"Authorization": "§", "Accept": "json"
headers={Authorization=§, Accept=json}
curl -H 'Authorization: §' http://x/y
Cookie: §
sv=2020-01-01&ss=b&sig=§&se=2024
https://acc.blob.core.windows.net/c?sv=2020&sig=§&sp=r
DefaultEndpointsProtocol=https;AccountName=acc;AccountKey=§;EndpointSuffix=core.windows.net
Endpoint=sb://x.servicebus.windows.net/;SharedAccessKey=§
https://b.s3.amazonaws.com/k?X-Amz-Algorithm=AWS4&X-Amz-Credential=§&X-Amz-Date=1&X-Amz-Signature=§
PlainLoginModule required username="joe" password="§";
"credentials": §, "x": "y"
['mysql', '--password', '§', 'shop']
["mysql", "--password", "§", "shop"]
{"name": "DB_PASSWORD", "value": "§"}
[{"value": "§", "name": "DB_PASSWORD"}]
{\"name\": \"DB_PASSWORD\", \"value\": \"§\"}
EnvVar(name='DB_PASSWORD', value='§')
<property name="password" value="§"/>
|            password|§|
|  fs.s3a.secret.key |§|
OPTIONS (password /* of the shop */ '§')
OPTIONS (password = /* of the shop */ '§')
OPTIONS (password /* of the shop */= "§", user 'joe')
WHERE token = '§' AND a.primary_key = 5
password=§)
password='§
'''.strip().split("\n")  # fmt: skip

VALUES = (SECRET, f"{SECRET}-+{SECRET}", f"{SECRET}!@*~^{SECRET}")


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("form", PLANTED)
def test_the_secret_goes_and_the_rest_stays(form: str, value: str) -> None:
    assert redact(form.replace("§", value)) == form.replace("§", REDACTED)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"Authorization: Bearer {SECRET}", "Authorization: §"),
        (f"Authorization: Basic {BASIC}", "Authorization: §"),
        (f'Authorization: Digest username="joe", response="{SECRET}", uri="/x"', "Authorization: §"),
        (f"got 401 for Bearer {SECRET} at host", "got 401 for Bearer § at host"),
        (f"sent basic {BASIC} to host", "sent basic § to host"),
        (f"https://joe:p@{SECRET}/x@host/x?a=b@c", "https://§@host/x?a=b@c"),
        (f"https://joe:{SECRET}?x#y@host", "https://§@host"),
        (f"https://{SECRET}@host", "https://§@host"),
        (f"https://x-access-token:{SECRET}@github.com/o/r", "https://§@github.com/o/r"),
        (f"x joe:{SECRET}@tcp(host:3306)/db", "x §@tcp(host:3306)/db"),
        (f"x joe:{SECRET}@host.org/db", "x §@host.org/db"),
        (f"curl -u joe:{SECRET} http://x/y", "curl -u § http://x/y"),
        (f"Map(password -> Some({SECRET}), user -> joe)", "Map(password -> §, user -> joe)"),
        (f"jdbc:x://h:PORT/db?user=a@b&password=a@{SECRET}", "jdbc:x://§"),
        ("https://joe%40x:p%2Fw%3A1@host/x", "https://§@host/x"),
        (f"mongodb+srv://u:{SECRET}@h1:27017,h2:27017/db", "mongodb+srv://§@h1:27017,h2:27017/db"),
        (f"abfss://container:{SECRET}@acc.dfs.core.windows.net/p", "abfss://container:§@acc.dfs.core.windows.net/p"),
        (f"s3n://AKIAABCDEFGHIJKLMNOP:{SECRET}/+x@bucket/path", "s3n://§@bucket/path"),
        (f"jdbc:sqlserver://h;password={{a;{SECRET}}}}}b}};e=true", "jdbc:sqlserver://h;password=§};e=true"),
        (f"aes_encrypt(name, '{SECRET}', 'GCM') AS x", "aes_encrypt§ AS x"),
        (f"password = concat('{SECRET}', \"{SECRET}\")", "password = §"),
        (f"password = '{SECRET}' || '{SECRET}' AND x", "password = '§' AND x"),
        (f"OPTIONS (password 'a''{SECRET}\\'{SECRET}', dbtable 't')", "OPTIONS (password '§', dbtable 't')"),
        (f"OPTIONS (password '\n{SECRET}\n', dbtable 't')", "OPTIONS (password '§', dbtable 't')"),
        (f'{{"password": "a\\"{SECRET}", "b": 1}}', '{"password": "§", "b": 1}'),
        (f'{{\\"password\\": \\"a\\\\\\"{SECRET}\\", \\"b\\": 1}}', '{\\"password\\": \\"§\\", \\"b\\": 1}'),
        (f"Map(password -> correct horse {SECRET}, user -> joe)", "Map(password -> §, user -> joe)"),
        (f"{{user=joe, passphrase=correct horse {SECRET}, x=y}}", "{user=joe, passphrase=§, x=y}"),
        (f"'OPTIONS (password ''a''''{SECRET}'', user ''joe'')'", "'OPTIONS (password ''§'', user ''joe'')'"),
        (f"-----BEGIN X-----AKIAABCDEFGHIJKLMNOP {SECRET}-----END X----- x", "§ x"),
        (f"password: |\n  {SECRET}\n  {SECRET}\nuser: joe", "password: §\nuser: joe"),
        (f'"credentials": {{"user": "a", "pw": "{SECRET}"}}, "x": "y"', '"credentials": §, "x": "y"'),
        (f'"key": "-----BEGIN PRIVATE KEY-----\\n{SECRET}\\n-----END PRIVATE KEY-----", "x"', '"key": "§", "x"'),
        (f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET} cut off", "§"),
        ("id AKIAABCDEFGHIJKLMNOP used", "id § used"),
        (f"AKIAABCDEFGHIJKLMNOP:{'aB3/' * 10} used", "§ used"),
        ("ASIAABCDEFGHIJKLMNOP", "§"),
        (f"got ya29.a0{SECRET} from", "got § from"),
        ("x AIza" + "Sy0" * 11 + " y", "x § y"),
        (f"x ghp_{SECRET}{SECRET} y", "x § y"),
        (f"x github_pat_{SECRET}_{SECRET} y", "x § y"),
        (f"x glpat-{SECRET}{SECRET} y", "x § y"),
        (f"x xoxb-12345-{SECRET} y", "x § y"),
        (f"https://hooks.slack.com/services/T0/B0/{SECRET}", "https://§"),
        ("x dapi" + "0123456789abcdef" * 2 + "-2 y", "x § y"),
        ("x eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJqb2UifQ.c2lnbmF0dXJl y", "x § y"),
        (f"x sk-{SECRET}{SECRET} y", "x § y"),
        (f"OPTIONS (password 'ab' '{SECRET}', user 'joe')", "OPTIONS (password '§', user 'joe')"),
        (f"'OPTIONS (password ''ab'' ''{SECRET}'', user ''joe'')'", "'OPTIONS (password ''§'', user ''joe'')'"),
        (f"OPTIONS (password -- why\n  '{SECRET}')", "OPTIONS (password -- why\n  '§')"),
        (f"OPTIONS (password\n  '{SECRET}')", "OPTIONS (password\n  '§')"),
        (f'{{"password"\n :\n "{SECRET}"}}', '{"password"\n :\n "§"}'),
        (f"- name: DB_PASSWORD\n  value: {SECRET}\n- name: X", "- name: DB_PASSWORD\n  value: §\n- name: X"),
        (f"cmd --password \\\n  {SECRET}", "cmd --password \\\n  §"),
        (f"|password |{SECRET}   |\n|user     |joe |", "|password |§|\n|user     |joe |"),
        (
            f"+-+--------+---+\n|u|password|age|\n+-+--------+---+\n|joe |{SECRET}|41|\n|ann|a|{SECRET}|9|\n+--+",
            "+-+--------+---+\n|u|password|§|\n+-+--------+---+\n|joe |§|41|\n|ann|§|9|\n+--+",
        ),
        (f"COPY t CREDENTIALS 'aws_access_key_id=A;aws_secret_access_key={SECRET}'", "COPY t CREDENTIALS '§'"),
    ],
)  # fmt: skip
def test_forms_that_need_more_than_a_template(text: str, expected: str) -> None:
    assert redact(text) == expected.replace("§", REDACTED)


@pytest.mark.parametrize(
    "text",
    [
        "orders", "hive_metastore.sales.orders", "s3a://bucket/warehouse/sales.db/orders/day=2024-01-01/part-0.parquet",
        "abfss://container@account.dfs.core.windows.net/warehouse/orders", "wasbs://c@a.blob.core.windows.net/p",
        "abfs://container@account.dfs.core.windows.net/x", "wasb://c@a.blob.core.windows.net/p",
        "jdbc:oracle:thin:@//host:1521/svc?x=a@b", "jdbc:oracle:thin:/@wallet",
        "jdbc:postgresql://host:5432/db?ssl=true",
        "jdbc:sqlserver://h:1433;databaseName=d;encrypt=true",
        "http://host:8080/path@v2", "hdfs://nn:8020/user/joe@x/data",
        "mail joe@example.com", "owner:joe@example.com", "org.apache:thing:1.0@jar", "repo:tag@sha256:abcdef",
        "SELECT a.token_id FROM a JOIN b ON a.token_id = b.token_id WHERE a.primary_key = 5",
        "SELECT password, secret AS s FROM tokens ORDER BY token", "CREATE TABLE t (password STRING, token INT)",
        '{"type":"struct","fields":[{"name":"password","type":"string","nullable":true,"metadata":{}}]}',
        '["token","day"]', '{"auth-token-events":[0,1],"secret-topic":{"0":23}}', "primary-key=id, bucket-key=token_id",
        "key=3/part-0", "/data/key=3/sort_key=4",
        "password=null, token=?", '{"password":"","token":null,"secret":false}',
        "at com.amazonaws.auth.AWSCredentialsProviderChain.getCredentials(AWSCredentialsProviderChain.java:136)",
        "java.lang.SecurityException: cannot sign", "Bearer token expired. Basic authentication failed",
        "method signature: foo(int)", "the author: Ann; a passenger: Bob; the design: new", "1//2 of 3//4", "",
        "(token#1 = token#2)", "fields.token.aggregate-function=sum", "ssl.keystore.location=/etc/x.jks",
        "two names for one warehouse, identified by type and location", "the pin: out", "spinning: x, shopping=1",
        "password=\nuser=joe", "SELECT password -- the column\nFROM t WHERE a = 'x'", '{"name": "x", "value": "y"}',
        '{"value": "y", "name": "x"}', "a token\n\nvalue: x",
        "table t@v12 and t.snapshot_id_123", "eyJhIjoxfQ", "1.2.3-SNAPSHOT", "--", "://", "@", "a://b:1/c",
    ],
)  # fmt: skip
def test_what_holds_no_secret_stays_as_it_is(text: str) -> None:
    assert redact(text) is text


def test_the_mark_alone_does_not_hide_what_is_behind_it() -> None:
    assert redact(f"password={REDACTED}{SECRET}") == f"password={REDACTED}"


@pytest.mark.parametrize("form", PLANTED)
def test_twice_is_once(form: str) -> None:
    once = redact(form.replace("§", SECRET))
    assert redact(once) == once
