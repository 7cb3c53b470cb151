"""A broker with TLS, users and rights, for those who look at what somebody without them is answered."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka.admin import (
    AclBinding,
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
from tests.kit.kafka.secured import ADMIN, PASSWORD, Authority, new_authority, scram_client, secured

_SECONDS: Final = 60.0


@dataclass(frozen=True)
class SecuredBroker:
    server: KafkaServer
    authority: Authority

    def client(self, user: str, word: str) -> dict[str, str]:
        return scram_client(self.authority, user, word)

    @property
    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.server.address, **self.client(ADMIN, PASSWORD)})

    def add_user(self, user: str, word: str) -> None:
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        change = UserScramCredentialUpsertion(user, info, word.encode())
        admin = self.admin  # it must outlive what is asked of it
        admin.alter_user_scram_credentials([change])[user].result(_SECONDS)

    def allow(self, user: str, topic: str, *operations: str) -> None:
        """Operations as kafka-acls.sh has them."""
        names = {each.name.replace("_", ""): each for each in AclOperation}
        rights = [
            AclBinding(
                ResourceType.TOPIC,
                topic,
                ResourcePatternType.LITERAL,
                f"User:{user}",
                "*",
                names[each.upper()],
                AclPermissionType.ALLOW,
            )
            for each in operations
        ]
        admin = self.admin
        for asked in admin.create_acls(rights).values():
            asked.result(_SECONDS)


@contextmanager
def secured_broker(folder: Path, authority: Authority | None = None) -> Generator[SecuredBroker]:
    """Nobody but the administrator has any right."""
    authority = authority or new_authority(folder, "broker")
    client = {**scram_client(authority, ADMIN, PASSWORD), "ssl.endpoint.identification.algorithm": "none"}
    users = ["--add-scram", f"SCRAM-SHA-512=[name={ADMIN},password={PASSWORD}]"]
    with KafkaServer(properties=secured(authority), client=client, format_arguments=users) as server:
        yield SecuredBroker(server, authority)
