"""PostgreSQL on a modelled device: what it has acknowledged is there after `kill -9`, by its own checks."""

import os
import subprocess
from pathlib import Path

import pytest
from modelled import MakeDevice
from waiting import wait_until

from knobscope.devices import bring_up
from knobscope.processes import capture, write_shared
from knobscope.servers import Instance, Server, initialise_data, make_data_directory, open_instance
from knobscope.specs import Dbms

pytestmark = pytest.mark.real

_INSERTS = "insert into t (filler) values (repeat(md5(random()::text), 30)) returning id;\n" * 50_000
_TABLE = "create table t (id serial primary key, filler text)"


def run(instance: Instance, program: str, *arguments: str) -> str:
    """Return what a program of PostgreSQL prints, run as the server's user."""
    folder = Path(instance.fill_command(["postgres"], {}, "start")[0]).parent
    process = instance.start([str(folder / program), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    code, output, errors = capture(process, 600)
    assert code == 0, errors
    return output


def connect(instance: Instance) -> list[str]:
    return ["-h", str(instance.placeholders["socket"]), "-p", str(instance.port), "-U", "postgres"]


def count_rows(instance: Instance) -> int:
    return int(run(instance, "psql", *connect(instance), "-qAtc", "select count(*) from t"))


def insert_until_killed(instance: Instance, server: Server) -> set[int]:
    """Kill the server after some hundred commits; return the rows whose commits were acknowledged before."""
    folder = Path(instance.fill_command(["postgres"], {}, "start")[0]).parent
    script = instance.config / "inserts.sql"
    write_shared(script, _INSERTS, instance.user)
    command = [str(folder / "psql"), *connect(instance), "-qAt", "-v", "ON_ERROR_STOP=1", "-f", str(script)]
    client = instance.start(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    enough = count_rows(instance) + 150
    assert wait_until(lambda: count_rows(instance) >= enough)
    server.kill()
    code, output, _ = capture(client, 600)
    assert code != 0, "the client had inserted everything before the server was killed"
    return set(map(int, output.split()))


def test_no_commit_is_lost_and_no_page_torn_when_the_server_is_killed(
    postgresql: Dbms, make_device: MakeDevice, tmp_path: Path
) -> None:
    assert postgresql.lifecycle is not None
    device = make_device("server", size="512MiB", read="100us", write="50us", flush="500us", fill="100us")
    data, log = bring_up(device, Path("/")) / "data", tmp_path / "log"
    make_data_directory(data)
    with open_instance(postgresql, data) as instance:
        initialise_data(instance, {}, log)
        run(instance, "pg_checksums", "--enable", "-D", str(data))
        acknowledged: set[int] = set()
        kills = int(os.environ.get("KNOBSCOPE_KILLS", "2"))
        for kill in range(kills + 1):
            with Server(instance, postgresql.lifecycle, {"shared_buffers": 1024}, log) as server:
                server.wait_ready()  # after its recovery
                if kill == 0:
                    run(instance, "psql", *connect(instance), "-qc", _TABLE)
                stored = run(instance, "psql", *connect(instance), "-qAtc", "select id from t").split()
                assert acknowledged <= set(map(int, stored))
                if kill < kills:
                    acknowledged |= insert_until_killed(instance, server)
                    continue
                run(instance, "pg_amcheck", *connect(instance), "--install-missing", "--heapallindexed", "postgres")
                server.stop()
        assert len(acknowledged) > 100 * kills
        assert "Bad checksums:  0" in run(instance, "pg_checksums", "--check", "-D", str(data))
