"""Translates the parameters of JDBC URLs to those of the Python clients.

A parameter that only concerns Java's client is ignored. One that would change something and has no equivalent is
refused with an advice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from headwater.config import unknown
from headwater.errors import ConfigurationError

Translation = Callable[[str], "dict[str, str]"]


def _as(name: str) -> Translation:
    return lambda value: {name: value}


def _choice(name: str, values: Mapping[str, dict[str, str]]) -> Translation:
    def translated(value: str) -> dict[str, str]:
        if value.lower() not in values:
            raise ConfigurationError(f"jdbc.url: {unknown(f'value of {name} called', value, values)}")
        return values[value.lower()]

    return translated


def _seconds(name: str, unit: int) -> Translation:
    """Translate a number to whole seconds, where `unit` of them are one second. 0 means no limit, so it adds no
    parameter."""

    def translated(value: str) -> dict[str, str]:
        if not value.isascii() or not value.isdigit():
            raise ConfigurationError(f"jdbc.url: the number for {name} isn't one")
        return {name: str(-(-int(value) // unit))} if int(value) else {}

    return translated


def _not_here(instead: str) -> Translation:
    def refused(_: str) -> dict[str, str]:
        raise ConfigurationError(f"jdbc.url: {instead}")

    return refused


_NOTHING: Final[dict[str, str]] = {}
_ENCRYPTED: Final = {"ssl": "required"}
_PLAIN: Final = {"ssl_disabled": "true"}
_TRUTH: Final = {"true": _ENCRYPTED, "false": _PLAIN}
_CA: Final = {"ssl_verify_cert": "true"}
_FULL: Final = {"ssl_verify_cert": "true", "ssl_verify_identity": "true"}
_SSL_MODES: Final = {
    "disabled": _PLAIN,
    "disable": _PLAIN,
    "preferred": _NOTHING,
    "required": _ENCRYPTED,
    "trust": _ENCRYPTED,
    "verify_ca": _CA,
    "verify-ca": _CA,
    "verify_identity": _FULL,
    "verify-full": _FULL,
}
_PRIMARY: Final = {"target_session_attrs": "primary"}
_STANDBY: Final = {"target_session_attrs": "standby"}
_ANY_STANDBY: Final = {"target_session_attrs": "prefer-standby"}
_SERVERS: Final = {
    "any": _NOTHING,
    "primary": _PRIMARY,
    "master": _PRIMARY,
    "secondary": _STANDBY,
    "slave": _STANDBY,
    "prefersecondary": _ANY_STANDBY,
    "preferslave": _ANY_STANDBY,
}
_KEY_STORE: Final = _not_here(
    "Java's key stores can't be read here: write the certificate's file as ssl_ca in an URL that begins with mysql://"
)

POSTGRESQL: Final[Mapping[str, Translation]] = {
    **{name: _as(name) for name in ("user", "password", "sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword")},
    "options": _as("options"),
    "ssl": _choice("ssl", {"true": {"sslmode": "verify-full"}, "": {"sslmode": "verify-full"}, "false": _NOTHING}),
    "sslfactory": _choice("sslfactory", {"org.postgresql.ssl.nonvalidatingfactory": {"sslmode": "require"}}),
    "ApplicationName": _as("application_name"),
    "connectTimeout": _seconds("connect_timeout", 1),
    "loginTimeout": _seconds("connect_timeout", 1),
    "targetServerType": _choice("targetServerType", _SERVERS),
    "tcpKeepAlive": _choice("tcpKeepAlive", {"true": {"keepalives": "1"}, "false": {"keepalives": "0"}}),
    "gssEncMode": _as("gssencmode"),
    "channelBinding": _as("channel_binding"),
    "currentSchema": _not_here("the tables are always in the schema headwater: leave currentSchema out"),
}
MYSQL: Final[Mapping[str, Translation]] = {
    **{name: _as(name) for name in ("user", "password")},
    **{name: _choice(name, _TRUTH) for name in ("useSSL", "useSsl", "requireSSL")},
    "sslMode": _choice("sslMode", _SSL_MODES),
    "verifyServerCertificate": _choice("verifyServerCertificate", {"true": _CA, "false": _NOTHING}),
    "serverSslCert": _as("ssl_ca"),
    "connectTimeout": _seconds("connect_timeout", 1000),
    "socketTimeout": _seconds("read_timeout", 1000),
    "localSocket": _as("unix_socket"),
    "trustCertificateKeyStoreUrl": _KEY_STORE,
    "trustStore": _KEY_STORE,
    "clientCertificateKeyStoreUrl": _KEY_STORE,
    "keyStore": _KEY_STORE,
    # A database that is missing is an error that says so.
    "createDatabaseIfNotExist": _choice("createDatabaseIfNotExist", {"false": _NOTHING, "true": _NOTHING}),
}
_JAVA_S_OWN: Final = """
    reWriteBatchedInserts prepareThreshold preparedStatementCacheQueries preparedStatementCacheSizeMiB preferQueryMode
    defaultRowFetchSize adaptiveFetch stringtype binaryTransfer loggerLevel loggerFile autosave cleanupSavepoints
    assumeMinServerVersion cancelSignalTimeout disableColumnSanitiser logUnclosedConnections loadBalanceHosts
    hostRecheckSeconds databaseMetadataCacheFields escapeSyntaxCallMode readOnly socketTimeout

    useUnicode characterEncoding connectionCollation serverTimezone connectionTimeZone timezone useLegacyDatetimeCode
    allowPublicKeyRetrieval rewriteBatchedStatements useServerPrepStmts cachePrepStmts prepStmtCacheSize
    prepStmtCacheSqlLimit autoReconnect failOverReadOnly maxReconnects zeroDateTimeBehavior nullCatalogMeansCurrent
    nullDatabaseMeansCurrent permitMysqlScheme tinyInt1isBit useBulkStmts useCursorFetch useInformationSchema
    allowMultiQueries dumpQueriesOnException tcpNoDelay maxAllowedPacket noAccessToProcedureBodies
"""
_IGNORED: Final = frozenset(_JAVA_S_OWN.split())


def translate_parameters(parameters: Iterable[tuple[str, str]], known: Mapping[str, Translation]) -> dict[str, str]:
    """Translate parameters by name. An unknown one is an error; error messages contain no values."""
    found: dict[str, str] = {}
    for name, value in parameters:
        if name in known:
            for option, meant in known[name](value).items():
                found.setdefault(option, meant)
        elif name not in _IGNORED:
            raise ConfigurationError(f"jdbc.url: {unknown('parameter', name, known)}")
    return found
