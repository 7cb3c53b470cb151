"""Which options hold secrets: the truth by hand, for Spark, Hadoop, Kafka, JDBC, the formats and the clouds."""

from __future__ import annotations

import pytest

from headwater.events.redaction import REDACTED, Redactor
from tests.kit.secret_forms import MARK, OPTION_NAMES, OPTION_VALUES


def words(text: str) -> list[str]:
    return text.split()


SECRET = words("""
password  PASSWORD  passwd  pwd  Pwd  db.pass  db_pw  userPassword  user-password  dbpassword  passphrase
secret  client_secret  clientSecret  client.secret  CLIENT-SECRET  spark.authenticate.secret  secretId
token  access_token  accessToken  refresh_token  id-token  spark.databricks.token  tokens  sasToken  sessionToken
key  apikey  apiKey  api_key  X-Api-Key  private_key  privateKey  private-key  privkey.key  account_key  AccountKey
credential  credentials  creds  aws.cred  gcpCredentials  credentials.json  authorization  proxy-authorization  cookie
fs.s3a.secret.key  fs.s3a.access.key  fs.s3a.session.token  fs.s3a.bucket.orders.secret.key  fs.s3n.awsSecretAccessKey
fs.s3n.awsAccessKeyId  fs.oss.accessKeySecret  fs.cosn.userinfo.secretKey  fs.obs.secret.key  s3.secret-access-key
fs.s3a.server-side-encryption.key  spark.hadoop.fs.azure.account.key.acct.dfs.core.windows.net
spark.hadoop.fs.azure.account.oauth2.client.secret.acct.dfs.core.windows.net
fs.azure.sas.cont.acct.blob.core.windows.net
fs.azure.account.key.location.file.core.windows.net  adls.sas-token.acct  adls.connection-string.acct
fs.gs.auth.service.account.private.key  spark.hadoop.google.cloud.auth.service.account.private.key
fs.gs.auth.client.secret  fs.gs.auth.refresh.token  gcs.oauth2.token  parquet.encryption.key.list
sasl.jaas.config  kafka.sasl.jaas.config  properties.sasl.jaas.config  kafka.ssl.key.password  ssl.key.pem
kafka.ssl.keystore.password  kafka.ssl.truststore.password
ssl.keystore.key  sasl.password  sasl.oauthbearer.client.secret
basic.auth.user.info  basic.auth.credentials  schema.registry.basic.auth.user.info  schema.registry.ssl.key.password
spark.sql.catalog.c.jdbc.password  spark.sql.catalog.c.credential
spark.sql.catalog.c.token  spark.sql.catalog.c.rest.auth
spark.sql.catalog.c.s3.access-key-id  spark.sql.catalog.c.oauth2.credential  javax.jdo.option.ConnectionPassword
spark.ssl.keyPassword  spark.ssl.keyStorePassword  spark.ssl.trustStorePassword  hive.server2.keystore.password
hoodie.datasource.hive_sync.password  hoodie.datasource.hive_sync.pass  es.net.http.auth.pass  spark.redis.auth
spark.cassandra.auth.password  spark.mongodb.connection.string  sfPassword
pem_private_key  sfToken  temporary_aws_secret_access_key
aws_secret_access_key  AWS_SECRET_ACCESS_KEY  aws_access_key_id  AWS_SESSION_TOKEN  azure_client_secret  GITHUB_TOKEN
SharedAccessKey  SharedAccessSignature  connectionString  connection_string  eventhubs.connectionString  webhook.url
slack_webhook  jwt  signing.key  encryption_key  encryptionKey  hmac-key  master.key  license_key  ssh_key  auth-key
signature  sig  X-Amz-Signature  X-Amz-Credential  X-Amz-Security-Token  bearer  oauth  oauthAccessToken  OAuthPvtKey
spark.kubernetes.authenticate.oauthToken  spark.kubernetes.driver.secrets.vault  spark.myapp.key  vendor.magic.key
s3.sse.key  fs.s3a.encryption.key  hadoop.http.authentication.signature.secret  otp  psk  userInfo  keystore.key
bindpw  ldap.bindPw  dbpw  userpass  dbPass  pin  user_pin  userPin  totp  my.totp  client_assertion  clientAssertion
""")

HARMLESS = words("""
primary-key  primary.key  primaryKey  primary_keys  bucket-key  bucket_key  merge-key  merge.keys  sequence.field
partition.key  partitionKey  partition-keys  sort.key  sort-keys  cluster.key  cluster-key  foreign_key  unique.key
record.key  recordkey  rowkey  row.key  distribution.key  hash-key  range_key  lookup.keys  join-key  dedup-key
hoodie.datasource.write.recordkey.field  hoodie.table.recordkey.fields  hoodie.table.keygenerator.class
hoodie.datasource.write.keygenerator.type
hoodie.datasource.write.precombine.field  hoodie.write.lock.zookeeper.lock_key
key.deserializer  key.serializer  key.format  key.fields
key.fields-prefix  key.converter  key-format  message.key.columns
value.format  value.fields-include  kafka.ssl.truststore.location  ssl.keystore.location  ssl.keystore.type
ssl.key.location  kafka.security.protocol  sasl.mechanism  sasl.kerberos.service.name  bootstrap.servers
hive.metastore.kerberos.principal  hive.metastore.kerberos.keytab.file  spark.kerberos.keytab  spark.kerberos.principal
spark.authenticate  spark.authenticate.secret.file
   spark.ssl.keyStoreType
spark.security.credentials.hive.enabled  fs.s3a.aws.credentials.provider  fs.s3a.endpoint  fs.s3a.path.style.access
fs.s3a.assumed.role.credentials.provider  hadoop.security.credential.provider.path  fs.azure.account.auth.type
fs.azure.account.oauth2.client.endpoint  fs.azure.account.oauth.provider.type  sasl.oauthbearer.token.endpoint.url
basic.auth.credentials.source  oauth2-server-uri
max.tokens  max_tokens   token-refresh-enabled
     authors  author  monkey  turkey  keyspace  keyboard
url  dbtable  driver  user  username  fetchsize  path  topic  subscribe  startingOffsets  group.id  client.id
warehouse  catalog-impl  io-impl  format-version  write.format.default  write.distribution-mode  write.metadata.path
delta.columnMapping.mode   delta.appendOnly  delta.logRetentionDuration
merge-engine  changelog-producer  snapshot.time-retained  fields.token.aggregate-function  fields.amount.sequence-group
spark.app.name  spark.master  spark.executor.memory  spark.sql.shuffle.partitions  spark.sql.session.timeZone
spark.eventLog.dir  spark.redaction.regex  spark.sql.redaction.options.regex  spark.yarn.queue  spark.jars
owner  comment  provider  location  created_at  numFiles  totalSize  transient_lastDdlTime  compression  header  sep
passenger.count    design  assignment  signal  sign_up_date  signed  conn.timeout  information
spinning  shopping  mapping  pinned   opinion
""")


@pytest.mark.parametrize("name", SECRET)
def test_the_value_is_hidden(name: str) -> None:
    assert Redactor().value(name, "orders") == REDACTED


@pytest.mark.parametrize("name", ["password", "a.key"])
def test_the_mark_of_a_value_tells_that_it_has_changed(name: str) -> None:
    marks = [Redactor(hash_key=key).value(name, value) for key, value in ((b"a", "x"), (b"a", "y"), (b"b", "x"))]
    assert len(set(marks)) == 3
    assert all(mark.startswith(f"{REDACTED} ") and len(mark) == len(REDACTED) + 14 for mark in marks)
    assert Redactor(hash_key=b"a").value(name, "x") == marks[0]
    assert Redactor(hash_key=b"c").value(name, marks[0]) == marks[0]


@pytest.mark.parametrize("name", HARMLESS)
def test_the_value_stays(name: str) -> None:
    assert Redactor().value(name, "orders") == "orders"


def test_the_table_is_large_and_without_contradiction() -> None:
    assert len(SECRET) >= 120
    assert len(HARMLESS) >= 120
    assert not set(SECRET) & set(HARMLESS)


@pytest.mark.parametrize("value", ["", "true", "false"])
def test_a_switch_is_no_secret(value: str) -> None:
    assert Redactor().value("fs.s3a.secret.key", value) == value


def test_a_harmless_name_does_not_protect_what_its_value_shows() -> None:
    assert Redactor().value("dbtable.url", "jdbc:x://h/d?password=hunter22") == REDACTED


@pytest.mark.parametrize("name", OPTION_NAMES)
def test_no_spelling_of_a_name_gives_its_value_away(name: str) -> None:
    assert Redactor().mapping({name: "orders"})[name] == REDACTED


@pytest.mark.parametrize("form", OPTION_VALUES)
def test_a_value_that_is_not_plain_goes_whole(form: str) -> None:
    assert Redactor().value("my.harmless.thing", form.replace(MARK, "Zq7xV9kLmW3pR")) == REDACTED


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("location", "s3://lake/" + "a/" * 80),
        ("kafka.bootstrap.servers", ",".join(f"broker{n}.example.com:9092" for n in range(9))),
        ("primary-key", "token_id"),
        ("spark.sql.catalog.lake.warehouse", "abfss://lake@acme.dfs.core.windows.net/warehouse"),
        ("fs.s3a.aws.credentials.provider", "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"),
        ("spark.sql.shuffle.partitions", "200"),
        ("url", "jdbc:postgresql://db/sales?ssl=true"),
        ("owner", "team sales"),
        ("table.uuid", "5d2a4d0e-1f47-4a3b-9c1e-0123456789ab"),
    ],
)
def test_what_lineage_needs_stays(name: str, value: str) -> None:
    assert Redactor().value(name, value) == value


def test_a_listed_name_does_not_keep_credentials() -> None:
    for value in ("s3a://K:Zq7xV9kLmW3pR@b/p", "jdbc:x://h?password=x", "https://Zq7xV9kLmW3pR@host/x"):
        assert Redactor().value("path", value) == REDACTED


def test_names_to_keep_are_compared_like_all_names() -> None:
    redactor = Redactor(keep="my.Monkey-Key, token.count")
    kept = redactor.mapping({"spark.my.monkey_key": "x", "token.count": "y" * 200, "my.key": "z"})
    assert kept == {"spark.my.monkey_key": "x", "token.count": "y" * 200, "my.key": REDACTED}
    assert not redactor.is_secret("TOKEN_COUNT")


def test_a_very_long_name_is_judged_by_its_end() -> None:
    assert Redactor().value("a." * 5000 + "password", "orders") == REDACTED
