"""DBMS servers, driven by their specs alone."""

from knobscope.servers.answers import ANSWER_PARSERS
from knobscope.servers.config import write_config_files
from knobscope.servers.instance import Configuration, Instance, fill_program, open_instance
from knobscope.servers.memory import MemoryLimit, limit_memory
from knobscope.servers.readback import ask_instance, compare_effective, readback_request
from knobscope.servers.server import Server, ServerFailedError, initialise_data, read_tail, read_version
from knobscope.servers.user import SERVICE_USER, find_service_user

__all__ = [
    "ANSWER_PARSERS",
    "SERVICE_USER",
    "Configuration",
    "Instance",
    "MemoryLimit",
    "Server",
    "ServerFailedError",
    "ask_instance",
    "compare_effective",
    "fill_program",
    "find_service_user",
    "initialise_data",
    "limit_memory",
    "open_instance",
    "read_tail",
    "read_version",
    "readback_request",
    "write_config_files",
]
