"""Real servers that no spec knows, or that are set up in another way than by their command line, under attach."""

import shutil
from pathlib import Path

import pytest
from loop_devices import Loop
from servers import ROOT, diagnose, start_server

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
