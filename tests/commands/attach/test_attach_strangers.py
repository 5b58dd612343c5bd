"""Real servers that no spec knows, or that are set up in another way than by their command line, under attach."""

import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from loop_devices import Loop
from servers import ROOT, Started, diagnose, start_server
from waiting import wait_until

pytestmark = pytest.mark.real

#: Parts of one variable; Redis and PostgreSQL overwrite theirs with their title.
_KNOBS = """
  {0}:
    type: integer
    range: [0, 100000]
    default: 10000
    apply: restart
    writing: {{variable: MALLOC_CONF, value: "{{property}},{{knob}}:{{value}}"}}
    readable: false
    mechanism: other
    source: https://jemalloc.net/jemalloc.3.html
"""


def test_knobs_are_read_from_the_environment_of_a_server(
    device: Loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert device.mount is not None
    shutil.copytree(ROOT / "specs", tmp_path / "specs")
    spec, names = tmp_path / "specs/dbms/mariadb.yaml", ("dirty_decay_ms", "muzzy_decay_ms", "lg_tcache_max")
    spec.write_text(spec.read_text() + "".join(map(_KNOBS.format, names)))
    monkeypatch.setenv("MALLOC_CONF", ",dirty_decay_ms:500,muzzy_decay_ms:70,dirty_decay_ms:600")
    with start_server("mariadb", device.mount, None) as server:
        monkeypatch.delenv("MALLOC_CONF")
        found, _, _ = diagnose(server, device, tmp_path, "--root", str(tmp_path))
    settings = found["settings"]
    assert {name: settings[name] for name in names if name in settings} == {
        "dirty_decay_ms": "600",
        "muzzy_decay_ms": "70",
    }
    assert settings["innodb_flush_log_at_trx_commit"] == "1", "what the command line says is still known"


def test_a_mean_of_direct_waits_is_not_said_of_waits_through_the_journal(device: Loop, tmp_path: Path) -> None:
    """A file that grows is flushed by the journal's thread: what the server's waits for itself is the smallest part."""
    assert device.mount is not None
    with start_server("redis", device.mount, None) as server:
        found, _, _ = diagnose(server, device, tmp_path)
    flush = next(row for row in found["budget"] if row["reason"] == "flush")
    assert flush["through_share"] > 0.5 * flush["share"]
    assert " each, " not in found["conclusion"].partition(";")[0]


def test_the_time_of_a_flush_is_not_that_of_writes_without_bpf(device: Loop, tmp_path: Path) -> None:
    """The kernel counts an empty write that asks for a flush as a write, with the time of the flush."""
    assert device.mount is not None
    file = device.mount / "flushed"
    file.write_bytes(bytes(4096))
    descriptor = os.open(file, os.O_RDWR)
    with start_server("redis", device.mount, None) as redis:
        busy = Started(redis.process, redis.url, lambda: _overwrite(descriptor), redis.ask)
        _, text, _ = diagnose(busy, device, tmp_path, "--monitor", "procfs")
    os.close(descriptor)
    rows = {words[0]: words for line in text.splitlines() if (words := line.split())[:1] in (["write"], ["flush"])}
    assert float(rows["write"][-1]) < float(rows["flush"][-1]), text


def _overwrite(descriptor: int) -> None:
    for _ in range(2000):
        os.pwrite(descriptor, bytes(4096), 0)
        os.fdatasync(descriptor)


_SUFFIX = "dc=test"
_CONFIGURATION = f"""include /etc/ldap/schema/core.schema
modulepath /usr/lib/ldap
moduleload back_mdb
database mdb
suffix "{_SUFFIX}"
rootdn "cn=root,{_SUFFIX}"
rootpw test
maxsize 100000000
directory """


@pytest.fixture
def slapd(device: Loop, tmp_path: Path) -> Iterator[Started]:
    """A directory server on a private socket; its load is four clients that add entries, one after another."""
    if shutil.which("slapd") is None:
        pytest.skip("slapd is not installed")
    assert device.mount is not None
    data, url = device.mount / "slapd", f"ldapi://{quote(str(tmp_path), safe='')}%2Fs"
    data.mkdir()
    (tmp_path / "conf").write_text(f"{_CONFIGURATION}{data}\n")
    client = ["ldapadd", "-x", "-H", url, "-D", f"cn=root,{_SUFFIX}", "-w", "test"]
    top = f"dn: {_SUFFIX}\nobjectClass: dcObject\nobjectClass: organization\no: t\ndc: test\n"

    def add(text: str) -> bool:
        return subprocess.run(client, input=text, text=True, check=False, capture_output=True).returncode == 0

    def add_many(number: int) -> None:
        entry = "dn: cn=e{0},{1}\nobjectClass: person\ncn: e{0}\nsn: s\n\n"
        assert add("".join(entry.format(f"{number}-{i}", _SUFFIX) for i in range(600)))

    command = ["slapd", "-d", "0", "-f", str(tmp_path / "conf"), "-h", url]
    with subprocess.Popen(command, cwd=data, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            assert wait_until(lambda: add(top))
            yield Started(process, url, lambda: _together(add_many, 4), lambda: "")
        finally:
            process.terminate()
            process.wait(60)
            shutil.rmtree(data)


def _together(work: Callable[[int], None], count: int) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("monitor", ["bpf", "procfs"])
def test_a_thread_that_only_passes_work_on_is_no_session(
    slapd: Started, device: Loop, tmp_path: Path, monitor: str
) -> None:
    found, text, _ = diagnose(slapd, device, tmp_path, "--monitor", monitor)
    assert found["at_fault"] != "idle"
    assert "No thread serves a client from request to answer" in text
