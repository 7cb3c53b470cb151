"""Keys come from files as spark-defaults.conf is written, from the environment, and from flags."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from headwater.config import Config, from_environment, from_file, layered, read_config, variable_of
from headwater.errors import ConfigurationError


class Kafka(Config):
    bootstrap_servers: tuple[str, ...] = ()
    topic: str = "headwater"
    max_bytes: int = 0
    schema_registry_url: str | None = Field(default=None, alias="schema.registry-url")
    producer: Mapping[str, str] = Field(default_factory=dict)
    producer_ssl: Mapping[str, str] = Field(default_factory=dict)
    producer_limit: int = 0


PREFIX = "spark.headwater.kafka."


def environment(**variables: str) -> dict[str, str]:
    return from_environment(Kafka, {**variables, "PATH": "/bin"}, "HEADWATER_KAFKA_", prefix=PREFIX)


@pytest.mark.parametrize(
    ("variable", "key"),
    [
        ("BOOTSTRAP_SERVERS", "bootstrap.servers"),
        ("MAX_BYTES", "max.bytes"),
        ("SCHEMA_REGISTRY_URL", "schema.registry-url"),
        ("PRODUCER_SASL_USERNAME", "producer.sasl.username"),
        ("PRODUCER_SSL_CA__PEM", "producer.ssl.ca_pem"),
        ("PRODUCER_LIMIT", "producer.limit"),
    ],
)
def test_a_variable_stands_for_one_key(variable: str, key: str) -> None:
    assert environment(**{f"HEADWATER_KAFKA_{variable}": "1"}) == {PREFIX + key: "1"}


def test_what_the_environment_says_can_be_read() -> None:
    values = environment(HEADWATER_KAFKA_BOOTSTRAP_SERVERS="a:1,b:2", HEADWATER_KAFKA_PRODUCER_ACKS="all")
    made = read_config(Kafka, values, prefix=PREFIX)
    assert made == Kafka(bootstrap_servers=("a:1", "b:2"), producer={"acks": "all"})


def test_all_wrong_variables_are_reported_with_the_nearest_right_ones_and_no_values() -> None:
    with pytest.raises(ConfigurationError) as caught:
        environment(HEADWATER_KAFKA_BOOTSTRAP_SERVER="geheim", HEADWATER_KAFKA_PRODUCER="geheim")
    assert str(caught.value) == (
        "there is no variable HEADWATER_KAFKA_BOOTSTRAP_SERVER: did you mean HEADWATER_KAFKA_BOOTSTRAP_SERVERS?; "
        "HEADWATER_KAFKA_PRODUCER is a section, not a key: write HEADWATER_KAFKA_PRODUCER_<NAME>"
    )


def test_a_variable_that_could_be_two_keys_is_a_fault() -> None:
    class Twins(Config):
        max_bytes: int = 0
        other: int = Field(default=0, alias="max-bytes")

    assert from_environment(Twins, {}, "X_") == {}
    with pytest.raises(ConfigurationError, match=r"X_MAX_BYTES can be max\.bytes or max-bytes: say it in a file"):
        from_environment(Twins, {"X_MAX_BYTES": "1"}, "X_")


def test_the_longest_section_has_the_variable() -> None:
    class Nested(Config):
        producer: Mapping[str, str] = Field(default_factory=dict)
        tls: Mapping[str, str] = Field(default_factory=dict, alias="producer-tls")

    assert from_environment(Nested, {"X_PRODUCER_TLS_CA": "1"}, "X_") == {"producer-tls.ca": "1"}


def test_variables_of_others_are_left_alone() -> None:
    variables = {"HEADWATER_TOPIC": "t", "HEADWATER_STORE_URL": "u"}
    assert from_environment(Kafka, variables, "HEADWATER_", others=["HEADWATER_STORE_"]) == {"topic": "t"}


def test_what_kubernetes_sets_for_a_service_is_ignored() -> None:
    service = {
        "HEADWATER_KAFKA_SERVICE_HOST": "10.0.0.1",
        "HEADWATER_KAFKA_SERVICE_PORT": "9092",
        "HEADWATER_KAFKA_SERVICE_PORT_PLAIN": "9092",
        "HEADWATER_KAFKA_PORT": "tcp://10.0.0.1:9092",
        "HEADWATER_KAFKA_PORT_9092_TCP": "tcp://10.0.0.1:9092",
        "HEADWATER_KAFKA_PORT_9092_TCP_PROTO": "tcp",
        "HEADWATER_KAFKA_PORT_9092_TCP_ADDR": "10.0.0.1",
    }
    assert environment(**service, HEADWATER_KAFKA_TOPIC="t") == {PREFIX + "topic": "t"}


def test_each_key_has_a_variable() -> None:
    assert variable_of("bootstrap.servers", "HEADWATER_KAFKA_") == "HEADWATER_KAFKA_BOOTSTRAP_SERVERS"


def test_the_later_layer_wins_and_what_was_not_given_leaves_what_was_there() -> None:
    defaults, file = {"a": "default", "b": "default", "c": "default", "d": "default"}, {"b": "file", "c": "file"}
    assert layered(defaults, file, {"c": "environment"}, {"c": None, "d": "flag"}) == {
        "a": "default",
        "b": "file",
        "c": "environment",
        "d": "flag",
    }


def written(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "headwater.conf"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_a_file_is_read_as_spark_reads_its_defaults(tmp_path: Path) -> None:
    text = (
        "\ufeff# a comment\n  ! another\n\n"
        "spark.master                     spark://host:7077\r\n"
        "key.equals=a = b # no comment\n"
        "key.colon : value\n"
        "  key.indented\tvalue  \n"
        "key.empty\n"
        'key.quoted  -XX:+UseG1GC -Dx="a b"\n'
        "key.long  one,\\\n    two,\\\n    three\n"
        "key.backslash C:\\\\temp\\\\\n"
        "key\\ with\\:odd\\=characters value\\u00fc\\t!\n"
        "key.umlaut ü\n"
        "key.last  x\\"
    )
    assert from_file(written(tmp_path, text)) == {
        "spark.master": "spark://host:7077",
        "key.equals": "a = b # no comment",
        "key.colon": "value",
        "key.indented": "value",
        "key.empty": "",
        "key.quoted": '-XX:+UseG1GC -Dx="a b"',
        "key.long": "one,two,three",
        "key.backslash": "C:\\temp\\",
        "key with:odd=characters": "valueü\t!",
        "key.umlaut": "ü",
        "key.last": "x",
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a 1\n\na geheim\n", r"headwater\.conf, line 3: a is in line 1 already: remove one"),
        ("# c\n= geheim\n", r"headwater\.conf, line 2: a key is missing: write key = value"),
        (b"a \xff", r"headwater\.conf isn't UTF-8: byte 2 is wrong"),
    ],
)
def test_what_is_wrong_with_a_file_is_reported(tmp_path: Path, text: str | bytes, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words) as caught:
        from_file(written(tmp_path, text))
    assert "geheim" not in str(caught.value)


def test_a_file_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"none\.conf can't be read: No such file or directory"):
        from_file(tmp_path / "none.conf")


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"]), min_size=1)


@given(values=st.dictionaries(NAMES, NAMES.map(str.strip)))
def test_whatever_is_written_with_escapes_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, values: dict[str, str]
) -> None:
    def escaped(text: str) -> str:
        return "".join(f"\\{each}" if not each.isalnum() else each for each in text)

    text = "\n".join(f"{escaped(key)}={escaped(value)}" for key, value in values.items())
    assert from_file(written(tmp_path_factory.mktemp("conf"), text)) == values
