"""The way to a cluster as far as Kafka has no part in it: names, ports, certificates."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from concurrent.futures import Executor
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass
from typing import Final

from headwater.publishers.kafka.config import KafkaConfig
from headwater.spi import Finding

_PATIENCE: Final = 5.0
_PORT: Final = 9092
_SOON: Final = 30 * 86_400.0
_WRONG_NAME: Final = frozenset({62, 64})
_NO_TLS: Final = frozenset(
    {None, "UNEXPECTED_EOF_WHILE_READING", "WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"}
)
"""What OpenSSL says of something else that answers, or hangs up; None is a connection that was reset."""
_EXPIRED: Final = 10
"""OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH, …_IP_ADDRESS_MISMATCH and …_CERT_HAS_EXPIRED."""


@dataclass(frozen=True)
class Server:
    """One of the bootstrap servers."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Reached:
    """How far it is to one server."""

    server: Server
    addresses: tuple[str, ...] = ()
    seconds: float | None = None
    """Until it took a connection; None where it took none."""
    why_not: str = ""


def servers_of(config: KafkaConfig) -> list[Server]:
    return [_server(item.strip()) for item in config.bootstrap_servers.split(",") if item.strip()]


def look_at_network(config: KafkaConfig, executor: Executor) -> Iterator[Finding]:
    """One server that can be reached is enough: the others are doubtful then."""
    asked = [(server, executor.submit(_reach, server)) for server in servers_of(config)]
    reached: list[Reached] = []
    for server, answer in asked:
        try:
            reached.append(answer.result(2 * _PATIENCE))
        except NotYet:  # noqa: PERF203 - a handful
            reached.append(Reached(server, why_not="the name service doesn't answer"))
    is_enough = any(each.seconds is not None for each in reached)
    yield from _addresses(reached, is_enough=is_enough)
    yield from _connections(reached, is_enough=is_enough)


def look_at_certificate(config: KafkaConfig) -> Iterator[Finding]:
    """What a broker shows that librdkafka trusts. Said is what this Python can see of it; librdkafka has decided."""
    for server in servers_of(config):
        try:
            with socket.create_connection((server.host, server.port), _PATIENCE) as plain:
                context = tls_context(config)
                with context.wrap_socket(plain, server_hostname=server.host) as secure:
                    yield _certificate(secure, server, is_checked=context.verify_mode is ssl.CERT_REQUIRED)
                    return
        except (OSError, ValueError):  # noqa: PERF203 - a handful
            continue
    yield Finding.fine("TLS", "librdkafka trusts the brokers' certificates")


def certificate_fault(config: KafkaConfig) -> tuple[str, str] | None:
    """Why a certificate isn't trusted, and what to do, where this Python sees it too."""
    for server in servers_of(config):
        try:
            with socket.create_connection((server.host, server.port), _PATIENCE) as plain:
                tls_context(config).wrap_socket(plain, server_hostname=server.host).close()
        except ssl.SSLCertVerificationError as e:  # noqa: PERF203 - a handful
            return f"the certificate of {server} isn't accepted: {e.verify_message}", _certificate_advice(e)
        except (ssl.SSLError, ConnectionResetError) as e:
            if getattr(e, "reason", None) in _NO_TLS:
                protocol = "SASL_PLAINTEXT" if "SASL" in config.protocol else "PLAINTEXT"
                advice = f"name the port that speaks TLS, or set producer.security.protocol={protocol}"
                return f"what listens at {server} doesn't speak TLS", advice
        except (OSError, ValueError):
            continue
    return None


def speaks_tls(config: KafkaConfig) -> tuple[str, str] | None:
    """That a port wants TLS where the configuration has none: librdkafka only sees that it hangs up."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # nothing is sent there
    for server in servers_of(config):
        try:
            with socket.create_connection((server.host, server.port), _PATIENCE) as plain:
                context.wrap_socket(plain, server_hostname=server.host).close()
        except (OSError, ValueError):
            continue
        protocol = "SASL_SSL" if "SASL" in config.protocol else "SSL"
        advice = f"producer.security.protocol={protocol} (or SASL_SSL, where users log in), or name another port"
        return f"what listens at {server} speaks TLS, and producer.security.protocol is {config.protocol}", advice
    return None


def tls_context(config: KafkaConfig) -> ssl.SSLContext:
    """As librdkafka would check, as far as this Python can do the same."""
    told = config.producer
    place = told.get("ssl.ca.location", "")
    context = ssl.create_default_context(cafile=place if place not in {"", "probe"} else None)
    if told.get("ssl.ca.pem"):
        context.load_verify_locations(cadata=told["ssl.ca.pem"])
    if told.get("ssl.endpoint.identification.algorithm", "https") == "none":
        context.check_hostname = False
    if told.get("enable.ssl.certificate.verification", "true").lower() == "false":
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if "ssl.certificate.location" in told:  # never asked for at a terminal
        context.load_cert_chain(
            told["ssl.certificate.location"], told.get("ssl.key.location"), told.get("ssl.key.password", "")
        )
    return context


def _server(item: str) -> Server:
    """`host`, `host:port`, `[address]:port`, each with or without a protocol before it, as librdkafka takes them."""
    address = item.rpartition("://")[2]
    host, _, port = address.rpartition(":") if ":" in address.rpartition("]")[2] else (address, "", "")
    return Server(host.strip("[]"), int(port) if port.isdecimal() else _PORT)


def _reach(server: Server) -> Reached:
    try:
        found = socket.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as e:
        return Reached(server, why_not=f"{server.host} isn't known here ({getattr(e, 'strerror', None) or e})")
    addresses = tuple(dict.fromkeys(str(each[4][0]) for each in found))
    began = time.monotonic()
    try:
        socket.create_connection((server.host, server.port), _PATIENCE).close()
    except TimeoutError:
        why_not = f"{server} doesn't answer within {_PATIENCE:.0f} s"
        return Reached(server, addresses, why_not=f"{why_not}: is there a firewall between, or is the host down?")
    except OSError as e:
        return Reached(server, addresses, why_not=f"{server} takes no connection ({e.strerror or e})")
    return Reached(server, addresses, time.monotonic() - began)


def _addresses(reached: list[Reached], *, is_enough: bool) -> Iterator[Finding]:
    known = {each.server.host: ", ".join(each.addresses) for each in reached if each.addresses}
    if known:
        told = [host if host == addresses else f"{host} is {addresses}" for host, addresses in known.items()]
        yield Finding.fine("addresses", "; ".join(told))
    for each in reached:
        if not each.addresses:
            advice = "put bootstrap.servers right, or the name service (/etc/hosts, DNS) of this machine"
            yield _not_reached("addresses", each, advice, is_enough=is_enough)


def _connections(reached: list[Reached], *, is_enough: bool) -> Iterator[Finding]:
    taken = [
        f"{each.server} took a connection after {each.seconds * 1000:.1f} ms"
        for each in reached
        if each.seconds is not None
    ]
    if taken:
        yield Finding.fine("connection", "; ".join(taken))
    for each in reached:
        if each.addresses and each.seconds is None:
            advice = "is a broker running there, is the port right, and may this machine connect to it?"
            yield _not_reached("connection", each, advice, is_enough=is_enough)


def _not_reached(step: str, each: Reached, advice: str, *, is_enough: bool) -> Finding:
    return (Finding.doubtful if is_enough else Finding.wrong)(step, each.why_not, advice)


def _certificate(secure: ssl.SSLSocket, server: Server, *, is_checked: bool) -> Finding:
    if not is_checked:
        words = f"{secure.version()}; nobody checks who {server} is: enable.ssl.certificate.verification is false"
        return Finding.doubtful(
            "TLS", words, "producer.enable.ssl.certificate.verification=true, and the authority in ca"
        )
    shown = secure.getpeercert() or {}
    until = str(shown.get("notAfter", ""))
    words = (
        f"{secure.version()}; the certificate of {server} is that of {_name(shown.get('subject'))}, signed by "
        f"{_name(shown.get('issuer'))}, valid until {until}"
    )
    if until and ssl.cert_time_to_seconds(until) - time.time() < _SOON:
        return Finding.doubtful("TLS", words, "renew the broker's certificate before that")
    return Finding.fine("TLS", words)


def _name(entries: object) -> str:
    """The common name, or whatever there is, of what Python gives as nested tuples."""
    pairs = [pair for entry in entries for pair in entry] if isinstance(entries, tuple) else []
    named = dict(pair for pair in pairs if len(pair) == 2)
    return str(named.get("commonName") or ", ".join(str(value) for _, value in pairs) or "nobody")


def _certificate_advice(error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code in _WRONG_NAME:
        return "write the broker in bootstrap.servers, and in its advertised.listeners, by a name in its certificate"
    if error.verify_code == _EXPIRED:
        return "renew the broker's certificate, or see to the clock of this machine"
    return "name the certificate of the authority that signed the broker's: producer.ssl.ca.location=/path/to/ca.pem"
