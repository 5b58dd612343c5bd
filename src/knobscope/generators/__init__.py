"""Load generators: YCSB's own Java client with knobscope's bindings and timing (`clients/`), and others by spec."""

from knobscope.generators.clients import client_libraries, find_clients, find_java
from knobscope.generators.command_run import CommandRun, GeneratorCall, load_data
from knobscope.generators.elsewhere import RemoteYcsbRun, telling_of_loss
from knobscope.generators.failure import GeneratorError
from knobscope.generators.results import LoadResult, SessionOperation
from knobscope.generators.session import Session
from knobscope.generators.suites import (
    client_properties,
    finish_statements,
    has_own_tables,
    loading_threads,
    make_files,
    own_tables,
    record_bytes,
)
from knobscope.generators.tpcc import TPCC_TABLES, tpcc_properties
from knobscope.generators.tpcds import DSDGEN, TPCDS_TABLES, make_tpcds_data, tpcds_properties
from knobscope.generators.tpch import TPCH_TABLES, make_tpch_data, tpch_properties
from knobscope.generators.ycsb import Connected, RowWriter, Witness, YcsbRun, count_lost, load_records, read_back
