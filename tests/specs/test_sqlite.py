"""SQLite's spec and catalogue are right: the library inside sqlite-jdbc has these defaults and takes these values."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from knobscope.servers import PartHome, compare_effective, open_instance
from knobscope.specs import Dbms, Knob, KnobCatalogue, Study, Value, catalogue_file, read_knob_catalogue, read_spec
from knobscope.specs.completing.layout_knobs import spread_layout

Ask = Callable[[list[str], Path], list[str]]  # as fixture `ask`
HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SPEC = ROOT / "specs/dbms/sqlite.yaml"
LIBRARIES = sorted((ROOT / "clients/target/lib").glob("*.jar"))

USE = "select field0 from usertable where YCSB_KEY = 'a'"

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(shutil.which("java") is None, reason="no Java"),
    pytest.mark.skipif(not LIBRARIES, reason="the load client is not built: make setup"),
]


@pytest.fixture(scope="module")
def sqlite() -> Dbms:
    return read_spec(SPEC, Dbms, None)[1]


@pytest.fixture(scope="module")
def catalogue() -> KnobCatalogue:
    read = read_knob_catalogue(catalogue_file(SPEC))
    assert read is not None
    return read


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Ask:
    """Return a function that gives the answer to the last statement of each line."""
    classes = tmp_path_factory.mktemp("classes")
    quick = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    compiler = ["javac", *(f"-J{option}" for option in quick), "-proc:none", "-d", classes]
    subprocess.run([*compiler, HERE / "SqliteProbe.java"], check=True, timeout=300)

    def answers(lines: list[str], folder: Path) -> list[str]:
        command = ["java", *quick, "-cp", ":".join(map(str, [classes, *LIBRARIES])), "SqliteProbe", folder / "x.db"]
        done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True, timeout=300)
        return done.stdout.splitlines()

    return answers


def values_of(knob: Knob) -> list[Value]:
    return [*(knob.values or knob.range or [False, True]), *knob.special]


def test_every_pragma_is_a_knob_or_has_a_reason_not_to_be_one(
    sqlite: Dbms, catalogue: KnobCatalogue, ask: Ask, tmp_path: Path
) -> None:
    pragmas = ask(["select group_concat(name) from pragma_pragma_list"], tmp_path)[0].split(",")
    left_out = {name for names in catalogue.left_out.values() for name in names}
    assert set(pragmas) == catalogue.knobs.keys() | left_out
    assert left_out & sqlite.knobs.keys() == set(catalogue.left_out["only the spec describes it"])
    assert not {"nothing tells its type", "no range is reported"} & catalogue.left_out.keys()


def test_defaults_and_all_values_read_back_in_use(
    sqlite: Dbms, catalogue: KnobCatalogue, ask: Ask, tmp_path: Path
) -> None:
    """Each value is set, a table is made, written and read, and the value is still in force."""
    sqlite = sqlite.model_copy(update={"knobs": {**catalogue.knobs, **sqlite.knobs}})
    write = "insert into usertable (YCSB_KEY, field0) values ('a', 'b')"
    cases: list[tuple[str, Value]] = []
    lines = []
    for name, knob in sqlite.knobs.items():
        writing = (knob.writing or sqlite.writing[knob.apply]).sql or ""
        read = (sqlite.readback.each or "").format(knob=name)
        if name != "cache_spill":  # unset it depends on the size of the cache
            cases.append((name, knob.default))  # first: soft_heap_limit belongs to the process, not the connection
            lines.append(";".join([*sqlite.connection.session, read]))
        for value in values_of(knob):
            statement = writing.format(knob=name, value=sqlite.write(value))
            session = [*sqlite.connection.session, statement, *sqlite.loading.tables, write, USE, read]
            cases.append((name, value))
            lines.append(";".join(session))
    answers = ask(lines, tmp_path)
    assert len(answers) == len(cases)
    wrong = [
        (name, value, answer)
        for (name, value), answer in zip(cases, answers, strict=True)
        if compare_effective(sqlite, {name: value}, {name: answer})[1]
    ]
    assert wrong == []


def test_cache_spill_is_in_force_where_its_condition_holds(sqlite: Dbms, ask: Ask, tmp_path: Path) -> None:
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


def test_statements_keep_the_order_of_the_spec(sqlite: Dbms, ask: Ask, tmp_path: Path) -> None:
    """SQLite takes no page size once `auto_vacuum` has made the file's header, whatever a tuner names first."""
    with open_instance(sqlite, tmp_path / "data") as instance:
        statements = instance.session_statements({"auto_vacuum": "incremental", "page_size": 16384}, "init")
    session = [*statements, *sqlite.loading.tables]
    asked = [";".join([*session, f"pragma {name}"]) for name in ("page_size", "auto_vacuum")]
    assert ask(asked, tmp_path) == ["16384", "2"]


def test_knobs_are_in_force_in_a_part_that_is_attached(sqlite: Dbms, ask: Ask, tmp_path: Path) -> None:
    layout = {"name": "s", "description": "x", "dbms": ["sqlite"], "devices": ["here"], "workloads": {"ycsb-a": None}}
    study = Study.model_validate({**layout, "knobs": {"sqlite": {}}, "layout": {"sqlite": {"table.t": ["there"]}}})
    laid_out = spread_layout(study, sqlite)[1]
    home = {"device.table.t": PartHome(tmp_path / "table.t")}
    home["device.table.t"].directory.mkdir()
    of_connection = {"wal_autocheckpoint", "temp_store"} | {name for name, knob in sqlite.knobs.items() if knob.control}
    cases, lines = [], []
    for name, knob in sqlite.knobs.items():
        for value in values_of(knob) if knob.apply == "restart" and name not in of_connection else ():
            change = {"cache_size": -64, "cache_spill": value} if name == "cache_spill" else {name: value}
            with open_instance(laid_out, tmp_path / "data", homes=home) as instance:
                opening = instance.session_statements(change, "start")
            cases.append((name, value))
            lines.append(";".join([*opening, 'create table if not exists "table.t".t (x)', f'PRAGMA "table.t".{name}']))
    answers = zip(cases, ask(lines, tmp_path), strict=True)
    assert [
        (name, value, answer)
        for (name, value), answer in answers
        if compare_effective(sqlite, {name: value}, {name: answer})[1]
    ] == []


def test_version_and_session(sqlite: Dbms, ask: Ask, tmp_path: Path) -> None:
    version, timeout = ask([sqlite.version_sql or "", f"{sqlite.connection.session[0]};pragma busy_timeout"], tmp_path)
    assert version.startswith("3.")
    assert timeout == "5000"
