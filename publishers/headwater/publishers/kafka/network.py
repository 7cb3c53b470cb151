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
from headwater.spi import CheckResult

_TIMEOUT_SECONDS: Final = 5.0
_PORT: Final = 9092
_EXPIRES_SOON_SECONDS: Final = 30 * 86_400.0
_WRONG_NAME_CODES: Final = frozenset({62, 64})
_NO_TLS_REASONS: Final = frozenset(
    {None, "UNEXPECTED_EOF_WHILE_READING", "WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"}
)
"""What OpenSSL says of something else that answers, or hangs up; None is a connection that was reset."""
_EXPIRED_CODE: Final = 10
"""OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH, …_IP_ADDRESS_MISMATCH and …_CERT_HAS_EXPIRED."""


@dataclass(frozen=True)
class BrokerAddress:
    """One of the bootstrap servers."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Reachability:
    """How far it is to one server."""

    server: BrokerAddress
    addresses: tuple[str, ...] = ()
    seconds: float | None = None
    """Until it took a connection; None where it took none."""
    why_not: str = ""


def broker_addresses(config: KafkaConfig) -> list[BrokerAddress]:
    return [_parse_address(item.strip()) for item in config.bootstrap_servers.split(",") if item.strip()]


def check_network(config: KafkaConfig, executor: Executor) -> Iterator[CheckResult]:
    """One server that can be reached is enough: the others are doubtful then."""
    asked = [(server, executor.submit(_try_to_reach, server)) for server in broker_addresses(config)]
    reached: list[Reachability] = []
    for server, acked_position in asked:
        try:
            reached.append(acked_position.result(2 * _TIMEOUT_SECONDS))
        except NotYet:  # noqa: PERF203 - a handful
            reached.append(Reachability(server, why_not="the name service doesn't answer"))
    is_enough = any(server.seconds is not None for server in reached)
    yield from _check_addresses(reached, is_enough=is_enough)
    yield from _check_connections(reached, is_enough=is_enough)


def check_certificate(config: KafkaConfig) -> Iterator[CheckResult]:
    """What a broker shows that librdkafka trusts. Said is what this Python can see of it; librdkafka has decided."""
    for server in broker_addresses(config):
        try:
            with socket.create_connection((server.host, server.port), _TIMEOUT_SECONDS) as plain:
                context = make_tls_context(config)
                with context.wrap_socket(plain, server_hostname=server.host) as secure:
                    yield _read_certificate(secure, server, is_checked=context.verify_mode is ssl.CERT_REQUIRED)
                    return
        except (OSError, ValueError):  # noqa: PERF203 - a handful
            continue
    yield CheckResult.ok("TLS", "librdkafka trusts the brokers' certificates")


def find_certificate_fault(config: KafkaConfig) -> tuple[str, str] | None:
    """Why a certificate isn't trusted, and what to do, where this Python sees it too."""
    for server in broker_addresses(config):
        try:
            with socket.create_connection((server.host, server.port), _TIMEOUT_SECONDS) as plain:
                make_tls_context(config).wrap_socket(plain, server_hostname=server.host).close()
        except ssl.SSLCertVerificationError as e:  # noqa: PERF203 - a handful
            return f"the certificate of {server} isn't accepted: {e.verify_message}", _certificate_advice(e)
        except (ssl.SSLError, ConnectionResetError) as e:
            if getattr(e, "reason", None) in _NO_TLS_REASONS:
                protocol = "SASL_PLAINTEXT" if "SASL" in config.protocol else "PLAINTEXT"
                advice = f"name the port that speaks TLS, or set producer.security.protocol={protocol}"
                return f"what listens at {server} doesn't speak TLS", advice
        except (OSError, ValueError):
            continue
    return None


def find_tls_mismatch(config: KafkaConfig) -> tuple[str, str] | None:
    """That a port wants TLS where the configuration has none: librdkafka only sees that it hangs up."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # nothing is sent there
    for server in broker_addresses(config):
        try:
            with socket.create_connection((server.host, server.port), _TIMEOUT_SECONDS) as plain:
                context.wrap_socket(plain, server_hostname=server.host).close()
        except (OSError, ValueError):
            continue
        protocol = "SASL_SSL" if "SASL" in config.protocol else "SSL"
        advice = f"producer.security.protocol={protocol} (or SASL_SSL, where users log in), or name another port"
        return f"what listens at {server} speaks TLS, and producer.security.protocol is {config.protocol}", advice
    return None


def make_tls_context(config: KafkaConfig) -> ssl.SSLContext:
    """As librdkafka would check, as far as this Python can do the same."""
    settings = config.producer
    place = settings.get("ssl.ca.location", "")
    context = ssl.create_default_context(cafile=place if place not in {"", "probe"} else None)
    if settings.get("ssl.ca.pem"):
        context.load_verify_locations(cadata=settings["ssl.ca.pem"])
    if settings.get("ssl.endpoint.identification.algorithm", "https") == "none":
        context.check_hostname = False
    if settings.get("enable.ssl.certificate.verification", "true").lower() == "false":
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if "ssl.certificate.location" in settings:  # never asked for at a terminal
        context.load_cert_chain(
            settings["ssl.certificate.location"], settings.get("ssl.key.location"), settings.get("ssl.key.password", "")
        )
    return context


def _parse_address(item: str) -> BrokerAddress:
    """`host`, `host:port`, `[address]:port`, each with or without a protocol before it, as librdkafka takes them."""
    address = item.rpartition("://")[2]
    host, _, port = address.rpartition(":") if ":" in address.rpartition("]")[2] else (address, "", "")
    return BrokerAddress(host.strip("[]"), int(port) if port.isdecimal() else _PORT)


def _try_to_reach(server: BrokerAddress) -> Reachability:
    try:
        found = socket.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as e:
        return Reachability(server, why_not=f"{server.host} isn't known here ({getattr(e, 'strerror', None) or e})")
    addresses = tuple(dict.fromkeys(str(address[4][0]) for address in found))
    began = time.monotonic()
    try:
        socket.create_connection((server.host, server.port), _TIMEOUT_SECONDS).close()
    except TimeoutError:
        why_not = f"{server} doesn't answer within {_TIMEOUT_SECONDS:.0f} s"
        return Reachability(server, addresses, why_not=f"{why_not}: is there a firewall between, or is the host down?")
    except OSError as e:
        return Reachability(server, addresses, why_not=f"{server} takes no connection ({e.strerror or e})")
    return Reachability(server, addresses, time.monotonic() - began)


def _check_addresses(reached: list[Reachability], *, is_enough: bool) -> Iterator[CheckResult]:
    known = {server.server.host: ", ".join(server.addresses) for server in reached if server.addresses}
    if known:
        words = [host if host == addresses else f"{host} is {addresses}" for host, addresses in known.items()]
        yield CheckResult.ok("addresses", "; ".join(words))
    for server in reached:
        if not server.addresses:
            advice = "put bootstrap.servers right, or the name service (/etc/hosts, DNS) of this machine"
            yield _unreachable_result("addresses", server, advice, is_enough=is_enough)


def _check_connections(reached: list[Reachability], *, is_enough: bool) -> Iterator[CheckResult]:
    taken = [
        f"{server.server} took a connection after {server.seconds * 1000:.1f} ms"
        for server in reached
        if server.seconds is not None
    ]
    if taken:
        yield CheckResult.ok("connection", "; ".join(taken))
    for server in reached:
        if server.addresses and server.seconds is None:
            advice = "is a broker running there, is the port right, and may this machine connect to it?"
            yield _unreachable_result("connection", server, advice, is_enough=is_enough)


def _unreachable_result(step: str, each: Reachability, advice: str, *, is_enough: bool) -> CheckResult:
    return (CheckResult.warning if is_enough else CheckResult.error)(step, each.why_not, advice)


def _read_certificate(secure: ssl.SSLSocket, server: BrokerAddress, *, is_checked: bool) -> CheckResult:
    if not is_checked:
        words = f"{secure.version()}; nobody checks who {server} is: enable.ssl.certificate.verification is false"
        return CheckResult.warning(
            "TLS", words, "producer.enable.ssl.certificate.verification=true, and the authority in ca"
        )
    shown = secure.getpeercert() or {}
    until = str(shown.get("notAfter", ""))
    words = (
        f"{secure.version()}; the certificate of {server} is that of {_common_name(shown.get('subject'))}, signed by "
        f"{_common_name(shown.get('issuer'))}, valid until {until}"
    )
    if until and ssl.cert_time_to_seconds(until) - time.time() < _EXPIRES_SOON_SECONDS:
        return CheckResult.warning("TLS", words, "renew the broker's certificate before that")
    return CheckResult.ok("TLS", words)


def _common_name(entries: object) -> str:
    """The common name, or whatever there is, of what Python gives as nested tuples."""
    pairs = [pair for entry in entries for pair in entry] if isinstance(entries, tuple) else []
    named = dict(pair for pair in pairs if len(pair) == 2)
    return str(named.get("commonName") or ", ".join(str(value) for _, value in pairs) or "nobody")


def _certificate_advice(error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code in _WRONG_NAME_CODES:
        return "write the broker in bootstrap.servers, and in its advertised.listeners, by a name in its certificate"
    if error.verify_code == _EXPIRED_CODE:
        return "renew the broker's certificate, or see to the clock of this machine"
    return "name the certificate of the authority that signed the broker's: producer.ssl.ca.location=/path/to/ca.pem"
