"""DBMS servers, driven by their specs alone."""

from knobscope.servers.answers import ANSWER_PARSERS
from knobscope.servers.config import write_config_files
from knobscope.servers.data import copy_data, make_data_directory, settle_data
from knobscope.servers.instance import Configuration, Instance, fill_program, open_instance
from knobscope.servers.memory import MemoryLimit, limit_memory
from knobscope.servers.parts import PartHome, devices_of_part, make_part_homes, move_part, part_statements
from knobscope.servers.readback import ask_instance, compare_effective, readback_request
from knobscope.servers.server import Server, ServerFailedError, initialise_data, read_version
from knobscope.servers.statements import count_rows

__all__ = [
    "ANSWER_PARSERS",
    "Configuration",
    "Instance",
    "MemoryLimit",
    "PartHome",
    "Server",
    "ServerFailedError",
    "ask_instance",
    "compare_effective",
    "copy_data",
    "count_rows",
    "devices_of_part",
    "fill_program",
    "initialise_data",
    "limit_memory",
    "make_data_directory",
    "make_part_homes",
    "move_part",
    "open_instance",
    "part_statements",
    "read_version",
    "readback_request",
    "settle_data",
    "write_config_files",
]
