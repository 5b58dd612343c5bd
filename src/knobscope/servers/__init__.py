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
