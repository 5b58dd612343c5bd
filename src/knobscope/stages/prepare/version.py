"""Which version of a DBMS this machine has, without loading anything."""

from knobscope.generators import read_back
from knobscope.processes import open_temporary
from knobscope.servers import make_data_directory, open_instance, read_version
from knobscope.specs import Dbms, Workload
from knobscope.stages.prepare.snapshot import load_session


def find_version(dbms: Dbms, workload: Workload) -> str:
    """Return the version that the DBMS's own program prints or, for one without a program, that its client answers.

    GeneratorError: the client cannot connect. UserError: the program prints no version.
    """
    with open_temporary("knobscope-asked-") as directory:
        data = directory / "data"
        make_data_directory(data)
        with open_instance(dbms, data) as instance:
            printed = read_version(instance)
            if printed is not None:
                return printed
            session = load_session(instance, workload, [], [], threads=1)
            return read_back(session, instance.start).effective["version"]
