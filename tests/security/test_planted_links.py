"""The server's user plants links where root is about to write; root follows none of them."""

import os
import pwd
import subprocess
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
from shipped_specs import shipped_dbms
from waiting import PATIENCE_S

from knobscope.processes import (
    SERVICE_USER,
    UnsafeFileError,
    hand_over,
    make_own_directory,
    make_shared_directory,
    open_network,
    open_sandbox,
    read_foreign,
    write_shared,
)
from knobscope.servers import instance as instance_module
from knobscope.servers import open_instance, write_config_files

#: `KNOBSCOPE_RACES=10000` is the long form.
ATTEMPTS = int(os.environ.get("KNOBSCOPE_RACES", "300"))

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user: needs root")

#: Replaces everything it may by a link to the victim, as fast as it can.
PLANTER = """
import glob, os, sys
victim, pattern = sys.argv[1:]
names = ("password", "redis.conf", "users.sql", "client.properties", "init.sql", "out", "c", "s", "data")
while True:
    for top in glob.glob(pattern):
        for folder in (top, top + "/c", top + "/s", top + "/client", top + "/client/out", top + "/generator"):
            for name in names:
                try:
                    os.symlink(victim, folder + "/planted")
                    os.rename(folder + "/planted", folder + "/" + name)
                except OSError:
                    pass
"""


@as_root
@pytest.mark.real
def test_root_writes_through_no_planted_link(open_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(open_directory))
    open_directory.chmod(0o755)  # as /tmp: who plants sees what is there
    victim = open_directory / "victim"
    victim.write_text("root's own")
    victim.chmod(0o600)
    before = victim.stat()
    with open_network() as network, open_sandbox([]) as sandbox:  # for all attempts: they take most of the time
        monkeypatch.setattr(instance_module, "open_network", lambda: nullcontext(network))
        monkeypatch.setattr(instance_module, "open_sandbox", lambda _: nullcontext(sandbox))
        plant_while_root_writes(open_directory, victim)
    after = victim.stat()
    assert victim.read_text() == "root's own"
    assert (after.st_uid, after.st_gid, after.st_mode, after.st_mtime_ns) == (0, 0, before.st_mode, before.st_mtime_ns)


def plant_while_root_writes(open_directory: Path, victim: Path) -> None:
    """Write the files of instances while the server's user replaces all it may by links to the victim."""
    redis = shipped_dbms("redis")
    account = pwd.getpwnam(SERVICE_USER)
    planter = subprocess.Popen(
        ["/usr/bin/python3", "-c", PLANTER, str(victim), str(open_directory / "knobscope-*")],
        user=account.pw_uid,
        group=account.pw_gid,
        extra_groups=[],
        cwd="/",
    )
    planted = 0
    try:
        for _ in range(ATTEMPTS):
            with open_instance(redis, open_directory / "data") as instance:
                write_config_files(instance, {}, "start")
                planted += sum(path.is_symlink() for path in (instance.runtime / "s").iterdir())
                assert (instance.config / "redis.conf").read_text().startswith("port 0")
                assert instance.config.stat().st_uid == 0
        deadline = time.monotonic() + PATIENCE_S
        while planted == 0 and time.monotonic() < deadline:  # the attack has to be a real one
            with open_instance(redis, open_directory / "data") as instance:
                time.sleep(0.2)
                planted += sum(path.is_symlink() for path in (instance.runtime / "s").iterdir())
    finally:
        planter.kill()
        planter.wait()
    assert planted > 0


def test_nothing_is_written_where_others_may_write(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(UnsafeFileError, match="no directory that only user"):
        write_shared(folder / "file", "text", None)
    with pytest.raises(UnsafeFileError, match="no directory that only user"):
        make_own_directory(folder / "data", None)
    assert list(folder.iterdir()) == []


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("old")
    folder = tmp_path / "folder"
    make_shared_directory(folder, None)
    (folder / "file").symlink_to(victim)
    write_shared(folder / "file", "new", None)
    assert victim.read_text() == "old"
    assert (folder / "file").read_text() == "new"
    assert not (folder / "file").is_symlink()


def test_what_a_server_wrote_is_read_only_when_it_is_a_plain_file(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("text")
    (tmp_path / "link").symlink_to(tmp_path / "plain")
    os.mkfifo(tmp_path / "pipe")
    assert read_foreign(tmp_path / "plain") == "text"
    for name in ("link", "pipe"):
        with pytest.raises(UnsafeFileError, match="no plain file"):
            read_foreign(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        read_foreign(tmp_path / "nothing")


@as_root
def test_a_file_of_somebody_else_is_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "theirs").write_text("text")
    os.chown(folder / "theirs", 65534, 65534)
    with pytest.raises(UnsafeFileError, match="owner of its directory"):
        read_foreign(folder / "theirs")


@as_root
def test_a_directory_is_handed_over_without_following_links(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("root's")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic"):
        hand_over(folder, SERVICE_USER)
    assert victim.stat().st_uid == 0


@as_root
@pytest.mark.real
def test_a_command_gets_at_its_directories_below_a_closed_one(tmp_path: Path) -> None:
    """As root's home is closed to the service user; what else lies in it stays out of sight."""
    from knobscope.processes import capture, supervise

    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "secret").write_text("secret")
    make_own_directory(closed / "data", SERVICE_USER)
    command = ["/bin/sh", "-c", f"id -u; touch {closed}/data/made; ls {closed}; cat {closed}/secret"]
    process = supervise(
        command, user=SERVICE_USER, reach=[closed / "data"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/"
    )
    _, said, complained = capture(process, 20)
    assert said.splitlines()[0] == str(pwd.getpwnam(SERVICE_USER).pw_uid)
    assert "secret" not in said
    assert "secret" in complained  # ls may not list it, cat does not find it
    made = (closed / "data" / "made").stat()
    assert made.st_uid == pwd.getpwnam(SERVICE_USER).pw_uid
    assert sorted(path.name for path in closed.iterdir()) == ["data", "secret"]


@as_root
@pytest.mark.real
def test_roots_environment_stays_with_root(monkeypatch: pytest.MonkeyPatch) -> None:
    from knobscope.processes import capture, supervise

    monkeypatch.setenv("API_TOKEN", "secret")
    env = {**os.environ, "PGPASSWORD": "known"}
    process = supervise(["/usr/bin/env"], user=SERVICE_USER, stdout=subprocess.PIPE, env=env, cwd="/")
    _, said, _ = capture(process, 20)
    assert "API_TOKEN" not in said
    assert "PGPASSWORD=known" in said.splitlines()
    assert f"USER={SERVICE_USER}" in said.splitlines()
