"""The SQLite spec says the truth: the library inside sqlite-jdbc has these defaults and takes all of these values."""

import shutil
import subprocess
from pathlib import Path

import pytest

from knobscope.servers import compare_effective, open_instance
from knobscope.specs import Dbms, Knob, Value, read_spec

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LIBRARIES = sorted((ROOT / "clients/target/lib").glob("*.jar"))

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(shutil.which("java") is None, reason="no Java"),
    pytest.mark.skipif(not LIBRARIES, reason="the load client is not built: make setup"),
]


@pytest.fixture(scope="module")
def sqlite() -> Dbms:
    return read_spec(ROOT / "specs/dbms/sqlite.yaml", Dbms, None)[1]


def ask(lines: list[str], folder: Path) -> list[str]:
    """Return the answer to the last statement of each line."""
    classpath = ":".join(map(str, LIBRARIES))
    command = [
        "java",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        classpath,
        str(HERE / "SqliteProbe.java"),
        str(folder / "x.db"),
    ]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True, timeout=300)
    return done.stdout.splitlines()


def values_of(knob: Knob) -> list[Value]:
    return [*(knob.values or knob.range or [False, True]), *knob.special]


def test_defaults_and_all_values_read_back(sqlite: Dbms, tmp_path: Path) -> None:
    cases: list[tuple[str, Value]] = []
    lines = []
    for name, knob in sqlite.knobs.items():
        writing = sqlite.writing[knob.apply].sql or ""
        read = (sqlite.readback.each or "").format(knob=name)
        for value in values_of(knob):
            statement = writing.format(knob=name, value=sqlite.write(name, value))
            session = [*sqlite.connection.session, statement, *sqlite.loading.tables, read]
            cases.append((name, value))
            lines.append(";".join(session))
        if name != "cache_spill":  # unset it depends on the size of the cache
            cases.append((name, knob.default))
            lines.append(read)
    answers = ask(lines, tmp_path)
    assert len(answers) == len(cases)
    wrong = [
        (name, value, answer)
        for (name, value), answer in zip(cases, answers, strict=True)
        if compare_effective(sqlite, {name: value}, {name: answer})[1]
    ]
    assert wrong == []


def test_cache_spill_is_in_force_where_its_condition_holds(sqlite: Dbms, tmp_path: Path) -> None:
    """Below the number of pages in the cache SQLite answers that number: there `requires` must fail."""
    knob = sqlite.knobs["cache_spill"]
    assert knob.requirement is not None
    cases = [(size, spill) for size in sqlite.knobs["cache_size"].values or [] for spill in knob.values or []]
    lines = [f"pragma cache_size={size};pragma cache_spill={spill};pragma cache_spill" for size, spill in cases]
    in_force = {case: int(answer) == case[1] for case, answer in zip(cases, ask(lines, tmp_path), strict=True)}
    for (size, spill), is_in_force in in_force.items():
        if knob.requirement.holds({"cache_spill": spill, "cache_size": size, "page_size": 4096}):
            assert is_in_force, (size, spill)
    assert set(in_force.values()) == {True, False}


def test_statements_keep_the_order_of_the_spec(sqlite: Dbms, tmp_path: Path) -> None:
    """SQLite takes no page size once `auto_vacuum` has made the file's header, whatever a tuner names first."""
    with open_instance(sqlite, tmp_path / "data") as instance:
        statements = instance.session_statements({"auto_vacuum": "incremental", "page_size": 16384}, "init")
    session = [*statements, *sqlite.loading.tables]
    asked = [";".join([*session, f"pragma {name}"]) for name in ("page_size", "auto_vacuum")]
    assert ask(asked, tmp_path) == ["16384", "2"]


def test_version_and_session(sqlite: Dbms, tmp_path: Path) -> None:
    version, timeout = ask([sqlite.version_sql or "", f"{sqlite.connection.session[0]};pragma busy_timeout"], tmp_path)
    assert version.startswith("3.")
    assert timeout == "5000"
