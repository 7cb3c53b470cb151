"""What `headwater run` runs beside scripts, in one JVM with its driver: servers, and main classes of Java and Scala."""

from __future__ import annotations

from headwater.listeners.hosting.driver import HostingError, Launch
from headwater.listeners.hosting.main_class import MainClass, run_class
from headwater.listeners.hosting.servers import ConnectServer, HostedServer, ThriftServer, serve

__all__ = ["ConnectServer", "HostedServer", "HostingError", "Launch", "MainClass", "ThriftServer", "run_class", "serve"]
