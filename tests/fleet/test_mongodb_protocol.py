"""MongoDB's spec against FerretDB, a server that speaks MongoDB's protocol and stores in SQLite.

It is no MongoDB. Of the spec it proves what the load client and the report need: the connection, how records are
loaded, a knob in the client's URL, and the query that reads parameters back. How mongod is started, its options and
what they do to a device stay unverified.
"""

from pathlib import Path

import pytest
from shipped_specs import shipped_dbms
from short_runs import assert_whole, run_once

from knobscope.commands.introspect import ask_catalogue
from knobscope.specs import Dbms, Program, find_program
from knobscope.specs.models.lifecycle import Lifecycle

pytestmark = [pytest.mark.real, pytest.mark.fleet]
FERRETDB = Program(find=["ferretdb/bin/ferretdb"], install="setup/fleet.sh ferretdb")
#: What differs between the servers: the program, and how it is started.
START = [
    *("ferretdb", "--handler=sqlite", "--sqlite-url=file:{data}/", "--listen-addr=127.0.0.1:{port}"),
    *("--state-dir={data}", "--telemetry=disable", "--debug-addr=-", "--log-level=error"),
]


@pytest.fixture
def spoken() -> Dbms:
    if find_program(FERRETDB) is None:
        pytest.skip("no ferretdb; setup/fleet.sh ferretdb")
    mongodb = shipped_dbms("mongodb")
    assert mongodb.lifecycle is not None
    life = {**mongodb.lifecycle.model_dump(exclude_unset=True), "start": START}
    changes = {
        "programs": {"ferretdb": FERRETDB},
        "version": ["ferretdb", "--version"],
        "lifecycle": Lifecycle.model_validate(life),
        "knobs": {name: knob for name, knob in mongodb.knobs.items() if name == "write_concern_journal"},
    }
    return mongodb.model_copy(update=changes)


@pytest.mark.parametrize("workload", ["ycsb-a", "ycsb-c", "ycsb-update"])
@pytest.mark.parametrize("journal", [False, True])
def test_the_load_of_the_mongodb_spec_runs_whole(
    spoken: Dbms, workload: str, journal: bool, open_directory: Path
) -> None:
    configuration = {"write_concern_journal": journal}
    record = run_once(spoken, configuration, open_directory, workload, threads=1, records=100)
    assert_whole(record, configuration, spoken)


def test_parameters_are_read_back_with_the_query_of_the_spec(spoken: Dbms) -> None:
    assert ask_catalogue(spoken).rows["quiet"] == {"default": "false"}
