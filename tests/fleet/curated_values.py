"""What tests of several servers share: a server that is asked what is in force, and all curated values."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from knobscope.generators import read_back
from knobscope.servers import Instance, Server, initialise_data, open_instance
from knobscope.specs import Dbms, Value, Workload
from knobscope.stages.prepare import load_session


@contextmanager
def new_instance(dbms: Dbms, folder: Path, load_values: Mapping[str, Value]) -> Iterator[Instance]:
    """An initialised data directory below a folder, which is gone afterwards."""
    data = folder / "data"
    data.mkdir(mode=0o700)
    with open_instance(dbms, data) as instance:
        if instance.user is not None:
            shutil.chown(data, instance.user, instance.user)
        initialise_data(instance, load_values, folder / "log")
        yield instance
    shutil.rmtree(data)


def values_in_force(instance: Instance, workload: Workload, configuration: Mapping[str, Value]) -> dict[str, str]:
    """Start a server with these values, ask it, and stop it in good order."""
    life = instance.dbms.lifecycle
    assert life is not None
    with Server(instance, life, configuration, instance.data.parent / "log") as server:
        server.wait_ready()
        session = load_session(instance, workload, [], list(configuration), threads=1)
        effective = dict(read_back(session, instance.start).effective)
        server.stop()
        assert not server.is_alive
    return effective


def diagonal(dbms: Dbms) -> list[dict[str, Value]]:
    """Configurations that together hold both ends of each range, each special value and each value of an enum.

    Knobs whose `requires` does not hold in a configuration keep their defaults there, and so do those it names.
    """
    values = {name: [*(knob.range or knob.possible_values), *knob.special] for name, knob in dbms.knobs.items()}
    defaults = {name: knob.default for name, knob in dbms.knobs.items()}
    configurations = []
    for index in range(max(map(len, values.values()))):
        chosen = {name: some[index % len(some)] for name, some in values.items()}
        for name, knob in dbms.knobs.items():
            if knob.requirement and not knob.requirement.holds({**defaults, **chosen, "threads": 1, "records": 1}):
                for other in {name, *knob.requirement.names}:
                    chosen.pop(other, None)
        configurations.append({name: dbms.knobs[name].canonical(value) for name, value in chosen.items()})
    return configurations
