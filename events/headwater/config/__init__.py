"""Configuration: flat keys as people write them in Spark conf, files and environment become one validated object.

    class Settings(Config):
        hosts: tuple[str, ...]
        max_bytes: Bytes = 1 << 30
        timeout: Seconds = 30.0
        producer: Mapping[str, str] = Field(default_factory=dict)

    read_config(Settings, {"spark.headwater.kafka.hosts": "a,b", …}, prefix="spark.headwater.kafka.")

An unknown key, or one that is only nearly right, is an error that names the nearest right one: nothing is dropped
silently. All faults are reported at once, each with its full key, and never with a value, which may be a secret.
"""

from headwater.config.model import Config, read_config, read_usable_config, unknown
from headwater.config.sources import (
    cache_directory,
    from_environment,
    from_file,
    is_of_kubernetes,
    layered,
    read_toml,
    variable_of,
)
from headwater.config.units import Bytes, Seconds

__all__ = [
    "Bytes",
    "Config",
    "Seconds",
    "cache_directory",
    "from_environment",
    "from_file",
    "is_of_kubernetes",
    "layered",
    "read_config",
    "read_toml",
    "read_usable_config",
    "unknown",
    "variable_of",
]
