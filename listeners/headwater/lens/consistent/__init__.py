"""Consistent reads: SQL that names no snapshot reads versions that belong together.

port       who finds versions that belong together, and what it says: others implement it
answering  threads that answer what statements in the JVM ask
sessions   gives all sessions of an application their rule

The Java side is in `headwater.lens.java`. Who finds versions is a plug-in, loaded when an application asks for it.
"""

from headwater.lens.consistent.port import GROUP, FoundVersions, PinnedVersion, VersionFinder, VersionFinderFactory
from headwater.lens.consistent.sessions import KEY, ConsistentReads, begin, has_settings

__all__ = [
    "GROUP",
    "KEY",
    "ConsistentReads",
    "FoundVersions",
    "PinnedVersion",
    "VersionFinder",
    "VersionFinderFactory",
    "begin",
    "has_settings",
]
