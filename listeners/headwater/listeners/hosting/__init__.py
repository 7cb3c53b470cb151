"""What `headwater run` runs beside scripts, in one JVM with its driver: servers, and main classes of Java and Scala."""

from __future__ import annotations

from headwater.listeners.hosting.connect import Connect
from headwater.listeners.hosting.driver import HostingError, Launch
from headwater.listeners.hosting.main_class import MainClass, run_class
from headwater.listeners.hosting.servers import Server, serve
from headwater.listeners.hosting.thrift import Thrift

__all__ = ["Connect", "HostingError", "Launch", "MainClass", "Server", "Thrift", "run_class", "serve"]
