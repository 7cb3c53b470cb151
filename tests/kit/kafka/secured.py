"""A broker as companies run it: TLS, users by SCRAM or by token, and rights for each of them."""

from __future__ import annotations

import base64
import json
import subprocess
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from headwater.local import KafkaServer
from headwater.local.java import java
from tests.kit.kafka.stage import Stage, stage
from tests.kit.waiting import PATIENCE

ADMIN: Final = "admin"
PASSWORD: Final = "admin-secret"  # of a broker that lives for a test
_STORE_PASSWORD = "store-secret"
_USERS: Final = ("--add-scram", f"SCRAM-SHA-512=[name={ADMIN},password={PASSWORD}]")
_SECONDS = 60
_TOKEN_SECONDS = 300.0


@dataclass(frozen=True)
class Authority:
    """A certificate that signed itself, for 127.0.0.1; whoever trusts it trusts a server that has its key."""

    certificate: Path
    store: Path
    """Certificate and key, as Java wants them."""


def new_authority(folder: Path, name: str, *, host: str = "ip:127.0.0.1", days: int = 90) -> Authority:
    """By the keytool that comes with every Java."""
    store, certificate = folder / f"{name}.p12", folder / f"{name}.pem"
    key = ["-alias", name, "-keystore", str(store), "-storetype", "PKCS12", "-storepass", _STORE_PASSWORD]
    shape = ["-keyalg", "EC", "-dname", f"CN={name}", "-ext", f"san={host}", "-ext", "bc:c=ca:true"]
    made = ["-genkeypair", *key, *shape, "-validity", str(days)]
    for command in (made, ["-exportcert", "-rfc", *key, "-file", str(certificate)]):
        subprocess.run(
            [str(java().home / "bin" / "keytool"), *command], check=True, capture_output=True, timeout=_SECONDS
        )
    return Authority(certificate, store)


def scram_client(authority: Authority, user: str, password: str) -> dict[str, str]:
    """What a client says of itself."""
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": user,
        "sasl.password": password,
        "ssl.ca.location": str(authority.certificate),
    }


def token_client(authority: Authority, user: str) -> dict[str, str]:
    """By a token that nobody signed, as Kafka takes them where nothing else is configured."""
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.config": f"principal={user}",
        "ssl.ca.location": str(authority.certificate),
    }


def token_of(user: str) -> tuple[str, float]:
    """What an `oauth_cb` gives: a token that nobody signed, and when it ends."""
    now = time.time()
    claims = {"sub": user, "iat": now, "exp": now + _TOKEN_SECONDS}
    parts = (json.dumps(each).encode() for each in ({"alg": "none"}, claims))
    token = ".".join(base64.urlsafe_b64encode(each).decode().rstrip("=") for each in parts)
    return f"{token}.", now + _TOKEN_SECONDS


class SecuredUsers(ABC):
    """The users of a broker, and their rights."""

    @abstractmethod
    def admin(self) -> AdminClient:
        """Return a client of the administrator's; it has to outlive what is asked of it."""

    def new_user(self, password: str) -> str:
        """A user of its own for a test, without any rights."""
        user = f"user-{uuid.uuid4().hex[:8]}"
        self.set_password(user, password)
        return user

    def set_password(self, user: str, password: str) -> None:
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        change = UserScramCredentialUpsertion(user, info, password.encode())
        admin = self.admin()
        admin.alter_user_scram_credentials([change])[user].result(PATIENCE)

    def allow(self, user: str, topic: str, *operations: AclOperation) -> None:
        rights = [AclBinding(*_right(user, topic, each)) for each in operations]
        admin = self.admin()
        for asked in admin.create_acls(rights).values():
            asked.result(PATIENCE)

    def forbid(self, user: str, topic: str, *operations: AclOperation) -> None:
        """Take these rights away again."""
        rights = [AclBindingFilter(*_right(user, topic, each)) for each in operations]
        admin = self.admin()
        for asked in admin.delete_acls(rights).values():
            assert asked.result(PATIENCE), "there was no such right"


@dataclass
class SecuredStage(SecuredUsers):
    """A broker behind a proxy, for faults."""

    kafka: Stage
    authority: Authority

    def admin(self) -> AdminClient:
        return self.kafka.admin()


@dataclass(frozen=True)
class SecuredBroker(SecuredUsers):
    """A broker for those who look at what somebody without rights is answered."""

    server: KafkaServer
    authority: Authority

    def client(self, user: str, password: str) -> dict[str, str]:
        return scram_client(self.authority, user, password)

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.server.address, **self.client(ADMIN, PASSWORD)})


def _right(user: str, topic: str, operation: AclOperation) -> tuple[Any, ...]:
    topics, literal = ResourceType.TOPIC, ResourcePatternType.LITERAL
    return topics, topic, literal, f"User:{user}", "*", operation, AclPermissionType.ALLOW


@contextmanager
def secured_stage(folder: Path) -> Generator[SecuredStage]:
    """It keeps its certificates there."""
    authority = new_authority(folder, "broker")
    client = scram_client(authority, ADMIN, PASSWORD)
    with stage(properties=secured(authority), client=client, format_arguments=_USERS) as kafka:
        yield SecuredStage(kafka, authority)


@contextmanager
def secured_broker(folder: Path, authority: Authority | None = None) -> Generator[SecuredBroker]:
    """It keeps its certificates there, if it isn't given one."""
    authority = authority or new_authority(folder, "broker")
    client = {**scram_client(authority, ADMIN, PASSWORD), "ssl.endpoint.identification.algorithm": "none"}
    with KafkaServer(properties=secured(authority), client=client, format_arguments=_USERS) as server:
        yield SecuredBroker(server, authority)


def secured(authority: Authority) -> Mapping[str, str]:
    """What a broker is configured with: nobody but the administrator has any right."""
    scram, token = "common.security.scram.ScramLoginModule", "common.security.oauthbearer.OAuthBearerLoginModule"
    return {
        "listener.security.protocol.map": "BROKER:SASL_SSL,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512,OAUTHBEARER",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "listener.name.broker.scram-sha-512.sasl.jaas.config": (
            f"org.apache.kafka.{scram} required username='{ADMIN}' password='{PASSWORD}';"
        ),
        "listener.name.broker.oauthbearer.sasl.jaas.config": f"org.apache.kafka.{token} required;",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(authority.store),
        "ssl.keystore.password": _STORE_PASSWORD,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{ADMIN};User:ANONYMOUS",
        "auto.create.topics.enable": "false",
    }
