"""Servers started, asked and stopped from their specs alone."""

import os
import stat
from pathlib import Path

import pytest
from ssh_server import descendants

from knobscope.processes import find_service_user
from knobscope.servers import (
    Server,
    ServerFailedError,
    compare_effective,
    initialise_data,
    make_data_directory,
    open_instance,
    read_version,
    readback_request,
)
from knobscope.specs import Dbms, Lifecycle, Program, Value


def test_effective_values_are_compared_by_meaning(postgresql: Dbms, sqlite: Dbms) -> None:
    asked: dict[str, Value] = {"fsync": False, "shared_buffers": 4096, "checkpoint_completion_target": 0.5}
    answers = {"fsync": "off", "shared_buffers": "4096", "checkpoint_completion_target": "0.50"}
    assert compare_effective(postgresql, asked, answers)[1] == {}
    assert compare_effective(postgresql, asked, {**answers, "shared_buffers": "4097"})[1] == {
        "shared_buffers": "shared_buffers=4096 reads back 4097 (by `readback.query`)"
    }
    assert list(compare_effective(postgresql, asked, {"fsync": "on"})[1].values()) == [
        "fsync=off reads back on (by `readback.query`)",
        "shared_buffers=4096 is not read back (by `readback.query`)",
        "checkpoint_completion_target=0.5 is not read back (by `readback.query`)",
    ]
    size: dict[str, Value] = {"max_wal_size": 1024}  # in MB
    assert compare_effective(postgresql, size, {"max_wal_size": "1024MB"})[1] == {}
    assert compare_effective(postgresql, size, {"max_wal_size": "1GB"})[1] == {}
    assert compare_effective(postgresql, size, {"max_wal_size": "1023MB"})[1].keys() == {"max_wal_size"}
    rows, differing = compare_effective(sqlite, {"synchronous": "normal"}, {"synchronous": "1"})
    assert rows == [{"knob": "synchronous", "requested": "normal", "effective": "1"}]
    assert differing == {}
    silent = sqlite.knobs["synchronous"].model_copy(update={"readable": False})
    trusting = sqlite.model_copy(update={"knobs": {"synchronous": silent}})
    assert compare_effective(trusting, {"synchronous": "normal"}, {})[1] == {}
    assert compare_effective(trusting, {"synchronous": "normal"}, {"synchronous": "2"})[1] == {
        "synchronous": "synchronous=normal reads back 2 (by `readback.each`; `reads_back` expects 1)"
    }


def test_readback_is_a_query_or_a_question_per_knob(postgresql: Dbms, sqlite: Dbms) -> None:
    assert "pg_settings" in readback_request(postgresql, ["fsync"])["query"]
    assert readback_request(sqlite, ["page_size"]) == {"each": {"page_size": "PRAGMA page_size"}}


def test_knobs_reach_the_command_as_arguments_of_their_own(postgresql: Dbms, open_directory: Path) -> None:
    assert postgresql.lifecycle is not None
    with open_instance(postgresql, open_directory / "data") as instance:
        hostile = {"wal_compression": "$(touch owned); off"}
        command = instance.fill_command(postgresql.lifecycle.start, hostile, "start")
        assert "wal_compression=$(touch owned); off" in command
        assert instance.runtime.exists()
    assert not instance.runtime.exists()


def test_sqlite_knobs_are_statements_by_time_of_effect(sqlite: Dbms, tmp_path: Path) -> None:
    configuration: dict[str, Value] = {"page_size": 8192, "journal_mode": "wal"}
    with open_instance(sqlite, tmp_path) as instance:
        assert instance.session_statements(configuration, "init") == ["PRAGMA page_size=8192"]
        assert instance.session_statements(configuration, "start") == ["PRAGMA journal_mode=wal"]


@pytest.mark.real
def test_postgresql_lives_and_dies_by_its_spec(postgresql: Dbms, open_directory: Path) -> None:
    assert postgresql.lifecycle is not None
    data, log = open_directory / "data", open_directory / "log"
    data.mkdir(mode=0o700)
    with open_instance(postgresql, data) as instance:
        if instance.user is not None:
            os.chown(data, *user_ids(instance.user))
        initialise_data(instance, {}, log)
        version = read_version(instance)
        assert version is not None
        assert int(version.split(".")[0]) >= 14
        with Server(instance, postgresql.lifecycle, {"fsync": False}, log) as server:
            server.wait_ready()
            commands = [pid for pid, command in descendants(server.pid).items() if "keeper" not in command]
            owners = {Path(f"/proc/{pid}").stat().st_uid for pid in commands}
            assert owners == {user_ids(instance.user)[0] if instance.user else os.geteuid()}
            assert stat.S_IMODE((instance.runtime / "s").stat().st_mode) == 0o700
            server.stop()
            assert not server.is_alive
        with (
            pytest.raises(ServerFailedError, match="exit code") as caught,
            Server(instance, postgresql.lifecycle, {"shared_buffers": -5}, log) as server,
        ):
            server.wait_ready()
        assert "shared_buffers" in caught.value.log_tail
        never_ready = postgresql.lifecycle.model_copy(update={"ready": ["pg_isready", "--x"], "ready_timeout_s": 1})
        with (
            pytest.raises(ServerFailedError, match=r"within 1 s; pg_isready says: .*option '--x'.*--help"),
            Server(instance, never_ready, {}, log) as server,
        ):
            server.wait_ready()


@pytest.mark.real
def test_a_server_that_logs_only_to_a_file_is_quoted(postgresql: Dbms, open_directory: Path) -> None:
    assert postgresql.lifecycle is not None
    data, log = open_directory / "data", open_directory / "log"
    make_data_directory(data)
    collected = ["-c", "logging_collector=on", "-c", "log_directory=logs", "-c", "log_filename=server.log"]
    life = postgresql.lifecycle.model_copy(update={"start": [*postgresql.lifecycle.start, *collected]})
    with open_instance(postgresql, data) as instance:
        initialise_data(instance, {}, log)
        with Server(instance, life, {}, log) as server:
            server.wait_ready()
            server.stop()
        for segment in (data / "pg_wal").glob("0*"):
            segment.unlink()
        with pytest.raises(ServerFailedError) as silent, Server(instance, life, {}, log) as server:
            server.wait_ready()
        named = life.model_copy(update={"log": "{data}/logs/*.log"})
        with pytest.raises(ServerFailedError) as quoted, Server(instance, named, {}, log) as server:
            server.wait_ready()
    assert "could not locate a valid checkpoint record" not in silent.value.log_tail
    assert "could not locate a valid checkpoint record" in quoted.value.log_tail
    assert "ready to accept connections" not in quoted.value.log_tail, "what an earlier start logged is not quoted"


@pytest.mark.real
def test_a_link_in_place_of_a_log_shows_nothing_that_its_server_may_not_read(
    postgresql: Dbms, open_directory: Path
) -> None:
    if find_service_user() is None:
        pytest.skip("the server runs as the user of the test")
    secret, data = open_directory / "secret", open_directory / "data"
    secret.write_text("not for servers")
    secret.chmod(0o600)
    make_data_directory(data)
    dbms = postgresql.model_copy(update={"programs": {"sh": Program(find=["/bin/sh"], package="dash")}})
    start = ["sh", "-c", 'ln -s "$0" "$1"; exit 1', str(secret), "{data}/log"]
    with (
        open_instance(dbms, data) as instance,
        pytest.raises(ServerFailedError, match="exit code 1") as refused,
        Server(instance, Lifecycle(start=start, log="{data}/log"), {}, open_directory / "server.log") as server,
    ):
        server.wait_ready()
    assert "tail: " in refused.value.log_tail, "it was looked at"
    assert "not for servers" not in refused.value.log_tail


def user_ids(name: str) -> tuple[int, int]:
    import pwd

    entry = pwd.getpwnam(name)
    return entry.pw_uid, entry.pw_gid


def test_root_never_runs_servers() -> None:
    user = find_service_user()
    assert (user is None) == (os.geteuid() != 0)
    assert user != "root"
