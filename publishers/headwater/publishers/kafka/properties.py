"""Properties of librdkafka that it, or a promise of ours, doesn't accept: a slip of the pen costs a property, no event.

A property that is unknown, or whose value is wrong, is reported and left out, so its default holds. That isn't done
where the property, or one that may be meant, says where something goes or how a connection is secured: without it
events could go elsewhere or in the clear, so the listener waits until somebody puts it right, and its events wait in
the spool.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from headwater.publishers.kafka.config import refuse_property

_SECTION: Final = "producer."
_SECURES: Final = re.compile(
    r"secur|sasl|ssl|tls|auth|user|passw|cert|key|token|secret|credential|principal|kerb|crypt|ciph|protocol|mechanism"
    r"|jwt|jaas|trust|store|pem|sign|server|broker|host|addr|proxy|url|endpoint|listener|dns|callback|_cb$|plugin",
    re.IGNORECASE,
)
_MIN_SIMILARITY: Final = 0.6
_MEANT: Final = 3
"""So many names may be meant by one."""
_UNKNOWN_PROPERTY: Final = re.compile(r"No such configuration property: \"(?P<name>[^\"]+)\"")
_SILENT: Final = logging.Logger("headwater.properties", level=logging.CRITICAL + 1)  # noqa: LOG001 - for nobody
_SILENT.addHandler(logging.NullHandler())

_NAMES: Final = """
acks allow.auto.create.topics api.version.fallback.ms api.version.request api.version.request.timeout.ms
batch.num.messages batch.size bootstrap.servers broker.address.family broker.address.ttl broker.version.fallback
client.dns.lookup client.id client.rack compression.codec compression.level compression.type connections.max.idle.ms
debug delivery.report.only.error delivery.timeout.ms enable.gapless.guarantee enable.idempotence enable.metrics.push
enable.random.seed enable.sasl.oauthbearer.unsecure.jwt enable.sparse.connections enable.ssl.certificate.verification
linger.ms log.connection.close log.thread.name log_level max.in.flight max.in.flight.requests.per.connection
message.copy.max.bytes message.max.bytes message.send.max.retries message.timeout.ms metadata.broker.list
metadata.max.age.ms metadata.recovery.strategy metadata.recovery.rebootstrap.trigger.ms partitioner
plugin.library.paths queue.buffering.backpressure.threshold queue.buffering.max.kbytes queue.buffering.max.messages
queue.buffering.max.ms queuing.strategy receive.message.max.bytes reconnect.backoff.jitter.ms reconnect.backoff.max.ms
reconnect.backoff.ms request.required.acks request.timeout.ms retries retry.backoff.max.ms retry.backoff.ms
sasl.kerberos.keytab sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.principal
sasl.kerberos.service.name sasl.mechanism sasl.mechanisms sasl.oauthbearer.client.id sasl.oauthbearer.client.secret
sasl.oauthbearer.config sasl.oauthbearer.extensions sasl.oauthbearer.method sasl.oauthbearer.scope
sasl.oauthbearer.token.endpoint.url sasl.password sasl.username security.protocol socket.connection.setup.timeout.ms
socket.keepalive.enable socket.max.fails socket.nagle.disable socket.receive.buffer.bytes socket.send.buffer.bytes
socket.timeout.ms ssl.ca.certificate.stores ssl.ca.location ssl.ca.pem ssl.certificate.location ssl.certificate.pem
ssl.cipher.suites ssl.crl.location ssl.curves.list ssl.endpoint.identification.algorithm ssl.key.location
ssl.key.password ssl.key.pem ssl.keystore.location ssl.keystore.password ssl.providers ssl.sigalgs.list
statistics.interval.ms sticky.partitioning.linger.ms topic.metadata.propagation.max.ms
topic.metadata.refresh.fast.interval.ms topic.metadata.refresh.interval.ms topic.metadata.refresh.sparse
transaction.timeout.ms transactional.id
"""
NAMES: Final = tuple(_NAMES.split())
"""What a producer can be told: librdkafka has no way to ask for it. Only guesses depend on it: whether a property is
known, librdkafka says."""


def without_wrong_properties(
    values: Mapping[str, str], report: Callable[[str], None], *, shown: str = ""
) -> Mapping[str, str]:
    """Return the configuration of a listener without the properties that can be left out, after reporting each."""
    given = {key: value for key, value in values.items() if key.startswith(_SECTION) and key != _SECTION}
    properties = {key.removeprefix(_SECTION): value for key, value in given.items()}
    if not any(refuse_property(*given) for given in properties.items()) and _find_fault(properties) is None:
        return values
    right = dict(values)
    for key, value in given.items():
        name = key.removeprefix(_SECTION)
        fault = describe_fault(name, value, shown)
        if fault is not None and not any(map(_SECURES.search, [name, *_names_near(name)])):
            del right[key]
            report(f"{fault}; what holds now is the default")
    return right


def explain_refusal(words: str) -> str:
    """Return librdkafka's words on properties, with what may be meant by one that it doesn't know."""
    unknown = _UNKNOWN_PROPERTY.search(words)
    return _describe_unknown(unknown["name"]) if unknown else words


def _describe_unknown(name: str) -> str:
    """Say that librdkafka knows no such property, with the nearest ones that it knows."""
    near = _names_near(name)
    guess = f": did you mean {' or '.join(near)}?" if near else ": librdkafka's CONFIGURATION.md has all that there are"
    return f"there is no property {name} of librdkafka{guess}"


def _names_near(name: str) -> list[str]:
    """Return the names that may be meant by one; none for a name that is known."""
    return [] if name in NAMES else get_close_matches(name.lower(), NAMES, n=_MEANT, cutoff=_MIN_SIMILARITY)


def describe_fault(name: str, value: str, shown: str) -> str | None:
    """What is wrong with a property alone, without its value, which may be a secret."""
    refused = refuse_property(name, value)
    if refused is not None:
        return f"{shown}{refused}"
    fault = _find_fault({name: value})
    if fault is None:
        return None
    words = _describe_unknown(name) if _UNKNOWN_PROPERTY.search(fault) else "librdkafka doesn't accept its value"
    return f"{shown}{_SECTION}{name}: {words}"


def _find_fault(properties: Mapping[str, str]) -> str | None:
    """What librdkafka says against these properties. It connects to nobody: no broker is named."""
    named = {key: value for key, value in properties.items() if refuse_property(key, value) is None}
    settings: dict[str, Any] = {**named, "logger": _SILENT}
    try:
        AdminClient(settings)
    except KafkaException as e:
        return str(e.args[0].str())
    return None
