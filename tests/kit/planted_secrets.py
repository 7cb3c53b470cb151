"""Secrets planted in events of all kinds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from headwater.events.base import Model, StringMap
from headwater.events.envelope import Event
from headwater.events.marks import Identity, marked
from headwater.events.producer import Producer

SECRETS = st.text(st.sampled_from("abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"), min_size=12, max_size=24)
FORMS: dict[str, str] = {
    "a URL's user-info": "see https://etl:{}@host.example/path",
    "a URL's query": "https://host.example/path?user=etl&password={}&x=1",
    "a JDBC URL": "jdbc:postgresql://db:5432/shop?user=etl&password={}",
    "SQL Server's JDBC URL": "jdbc:sqlserver://db:1433;databaseName=shop;password={};encrypt=true",
    "Oracle's JDBC URL": "jdbc:oracle:thin:scott/{}@//db:1521/svc",
    "SQL options": "CREATE TABLE t USING jdbc OPTIONS (url 'jdbc:x', password '{}', dbtable 't')",
    "SQL table properties": "ALTER TABLE t SET TBLPROPERTIES ('fs.s3a.secret.key' = '{}')",
    "SET": "SET spark.hadoop.fs.s3a.secret.key={}",
    "an exception": "java.sql.SQLException: login failed for password={} at line 3",
    "JSON": '{{"user": "etl", "password": "{}"}}',
    "a JAAS line": 'ScramLoginModule required username="etl" password="{}";',
    "a SAS token": "https://acc.blob.core.windows.net/c/f?sv=2024-01-01&sp=r&sig={}%3D",
    "an account key": "DefaultEndpointsProtocol=https;AccountName=acc;AccountKey={}0000000000==;EndpointSuffix=x",
    "an AWS pair": "aws_access_key_id=AKIAIOSFODNN7EXAMPLE aws_secret_access_key={}",
    "a bearer token": "Authorization: Bearer {}",
    "a basic token": "Authorization: Basic {}",
    "a map of Scala": "Map(user -> etl, password -> {}, url -> x)",
    "a command line": "job.py --user etl --password {} --verbose",
}


IN_IDENTITIES: dict[str, str] = {
    "a URL's user-info": "https://etl:{}@host.example/path",
    "a URL's password with a slash": "s3n://AKIAIOSFODNN7EXAMPLE:{}/x@bucket/path",
    "Oracle's JDBC URL": "jdbc:oracle:thin:scott/{}@//db:1521/svc",
    "a web token": "/data/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJqb2UifQ.{}/x",
    "a SAS token": "https://acc.blob.core.windows.net/c/f?sv=2024-01-01&sp=r&sig=000000000000000000000000{}%3D",
}


SECRET_KEYS = ["password", "fs.s3a.secret.key", "sasl.jaas.config", "client_secret", "api-key", "spark.hadoop.my.token"]


class Planter:
    """Puts a text into one place after another of an event: into identities, or into all else."""

    def __init__(self, draft: Event, mark: type[Identity] | None = None) -> None:
        self._draft = draft
        self._in_identities = mark is Identity

    def everywhere(self, text: str, keys: list[str], bare: str) -> Iterator[Event]:
        """Copies of the draft, each with the text in one field; maps also get the bare secret under a secret's key."""
        yield from self._models(self._draft, text, keys, bare)

    def _models(self, model: Any, text: str, keys: list[str], bare: str) -> Iterator[Any]:
        kind: type[Model] = type(model)
        identities = marked(kind, Identity)
        for name, value in model.__dict__.items():
            if name in {"kind", "change"}:
                continue
            is_wanted = (name in identities) == self._in_identities
            for planted in self._values(value, text, keys, bare, is_wanted=is_wanted):
                yield model.model_copy(update={name: planted})

    def _values(self, value: Any, text: str, keys: list[str], bare: str, *, is_wanted: bool) -> Iterator[Any]:
        if type(value) is str:
            yield from [text] if is_wanted else []
        elif isinstance(value, StringMap) and is_wanted:
            yield StringMap({**value, "harmless": text})
            yield StringMap({**value, text: "harmless"})
            for key in keys:
                yield StringMap({**value, key: bare})
        elif isinstance(value, Model):
            yield from self._models(value, text, keys, bare)
        elif isinstance(value, tuple):
            for at, item in enumerate(value):
                for planted in self._values(item, text, keys, bare, is_wanted=is_wanted):
                    yield (*value[:at], planted, *value[at + 1 :])


def emitted(draft: Event, producer: Producer) -> bytes:
    appended: list[bytes] = []
    producer.emit(draft, lambda _, data: appended.append(data))
    return b"".join(appended)


def stands_there_anyway(secret: str, draft: Event, producer: Producer) -> bool:
    """A word that was made up can be one of ours: databaseName, say, which hypothesis finds in the code."""
    return any(secret in form for form in (*FORMS.values(), *IN_IDENTITIES.values())) or secret.encode() in emitted(
        draft, producer
    )
