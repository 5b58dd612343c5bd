"""DBMS servers, driven by their specs alone."""

from knobscope.servers.instance import Configuration, Instance, open_instance
from knobscope.servers.readback import compare_effective, readback_request
from knobscope.servers.server import Server, ServerFailedError, initialise_data, read_tail, read_version
from knobscope.servers.user import SERVICE_USER, find_service_user

__all__ = [
    "SERVICE_USER",
    "Configuration",
    "Instance",
    "Server",
    "ServerFailedError",
    "compare_effective",
    "find_service_user",
    "initialise_data",
    "open_instance",
    "read_tail",
    "read_version",
    "readback_request",
]
