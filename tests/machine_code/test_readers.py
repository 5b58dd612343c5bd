"""Settings are followed through machine code: to functions that read them, and on to requests to storage."""

import shutil
import subprocess
from pathlib import Path

import pytest

from knobscope.errors import UserError
from knobscope.machine_code import Code, Program, Reader, compare_neighbours, read_code
from knobscope.machine_code.program import shorten_name

#: A server of a few lines. `table` is how most DBMSs list their settings, `make` how others build objects for them.
SERVER = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int batch = 3, width = 5, pace = 7, depth = 9, unread = 1, shown = 2, first, second, win = 2, unseen = 3, order = 1;
struct pool { char rows[64]; int kept; } pool;
struct entry { const char *name; const char *help; void (*check)(void); int *variable; int least; };
__attribute__((noinline)) void check(void) { puts("checked"); }
struct entry table[] = {
    {"flush_batch", "How many at a time.", check, &batch, 1},
    {"line_width", "Of messages.", check, &width, 1},
    {"depth", "Of a part with a prefix.", check, &depth, 1},
    {"bin", "A collation, and no log.", check, &order, 1},
    {"rows_kept", "In a structure.", check, &pool.kept, 1},
    {"never_read", "By nobody.", check, &unread, 1},
    {"shown_only", "By those who list settings.", check, &shown, 1},
    {"object_wins", "Made into an object, too, and read there.", check, &first, 1},
    {"object_unseen", "Made into an object, too, and read from there.", check, &second, 1},
};
struct object { int *variable; } paced, won, hidden;
int lock;

__attribute__((noinline)) void make(struct object *self, const char *name, int *variable, int *guard) {
    self->variable = *guard ? variable : &lock;
    if (name[0] == '!') check();
}
__attribute__((noinline)) void begin(void) {
    make(&paced, "pace_of_flushes", &pace, &lock);
    make(&won, "object_wins", &win, &lock);
    make(&hidden, "object_unseen", &unseen, &lock);
}

__attribute__((noinline)) int flush_file(int file) { return fsync(file) + 1; }
__attribute__((noinline)) int write_batch(int file) {
    int done = 0;
    for (int i = 0; i < batch; i++) done += flush_file(file);
    return done;
}
__attribute__((noinline)) int wait_and_flush(int file) {
    usleep(pace);
    return write_batch(file) + flush_file(file);
}
__attribute__((noinline)) int grow(int file) { return win > 3 ? posix_fallocate(file, 0, 9) : 0; }
__attribute__((noinline)) int sort(int file) { return order > 1 ? fsync(file) : 3; }
__attribute__((noinline)) int look(int file) { return depth > 3 && fdatasync(file) ? 1 : 2; }
__attribute__((noinline)) int trim(int file) {
    struct pool *whole = &pool;
    __asm__("" : "+r"(whole));  /* so that the member is reached from the address of the whole */
    return whole->kept > 3 ? fdatasync(file) : whole->rows[0];
}
__attribute__((noinline)) int print_line(const char *text) { return printf("%*s\n", width, text); }
int main(int count, char **texts) {
    begin();
    for (unsigned i = 0; i < sizeof table / sizeof *table; i++) printf("%s %d\n", table[i].name, *table[i].variable);
    return wait_and_flush(count) + grow(count) + sort(count) + look(count) + trim(count) + print_line(texts[0]);
}
"""
SETTINGS = {
    *("flush_batch", "line_width", "part_depth", "rows_kept", "never_read", "shown_only", "pace_of_flushes", "missing"),
    *("object_wins", "object_unseen", "log_bin", "log_error", "log_output"),
}


def build(folder: Path, *options: str) -> Program:
    compiler = shutil.which("gcc")
    assert compiler is not None, "the devices' own programs need one, too"
    source, made = folder / "server.c", folder / "server"
    source.write_text(SERVER)
    subprocess.run([compiler, "-O1", "-fPIE", "-pie", *options, "-o", made, source], check=True)
    return Program(made)


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Code:
    return read_code(build(tmp_path_factory.mktemp("named"), "-rdynamic"), SETTINGS)


@pytest.mark.real
@pytest.mark.parametrize(
    ("setting", "path"),
    [
        ("flush_batch", ("write_batch", "flush_file", "fsync")),
        ("pace_of_flushes", ("wait_and_flush", "flush_file", "fsync")),  # the shorter of two ways
        ("part_depth", ("look", "fdatasync")),  # listed without its prefix
        ("rows_kept", ("trim", "fdatasync")),
        ("object_wins", ("grow", "posix_fallocate")),  # the table points to another variable, which nothing reads
    ],
)
def test_the_shortest_way_to_storage(code: Code, setting: str, path: tuple[str, ...]) -> None:
    nearest = code.nearest(setting)
    assert nearest is not None
    assert (nearest.path, nearest.calls) == (path, len(path) - 1)


@pytest.mark.real
def test_a_setting_whose_readers_never_get_there(code: Code) -> None:
    assert [(one.name, one.calls) for one in code.readers["line_width"]] == [("print_line", None)]
    assert code.nearest("line_width") is None


@pytest.mark.real
def test_settings_that_no_function_reads(code: Code) -> None:
    assert code.readers["never_read"] == code.readers["shown_only"] == ()
    assert code.unread == {"never_read", "shown_only"}
    assert {"missing", "log_bin"}.isdisjoint(code.readers)


@pytest.mark.real
def test_a_stripped_program_has_addresses_for_names(tmp_path: Path) -> None:
    stripped = read_code(build(tmp_path, "-s"), SETTINGS)
    nearest = stripped.nearest("flush_batch")
    assert nearest is not None
    assert nearest.path[-1] == "fsync"
    assert nearest.calls == 2
    assert all(name.startswith("0x") for name in nearest.path[:-1])


@pytest.mark.real
def test_a_program_that_is_bound_to_an_address(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="expected a position-independent program for x86-64"):
        build(tmp_path, "-no-pie")


def test_a_file_that_is_no_program(tmp_path: Path) -> None:
    file = tmp_path / "server"
    file.write_text("#!/bin/sh\n")
    with pytest.raises(UserError, match="no program in ELF form"):
        Program(file)
    with pytest.raises(UserError, match="No such file"):
        Program(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("_ZN13MYSQL_BIN_LOG14flush_and_syncEPb", "MYSQL_BIN_LOG::flush_and_sync"),
        ("_ZNK14Field_longlong12type_handlerEv", "Field_longlong::type_handler"),
        ("_Z12mysql_insertP3THDP10TABLE_LIST", "mysql_insert"),
        ("_ZNSt8ios_base4InitC1Ev", "_ZNSt8ios_base4InitC1Ev"),  # of the library itself: left as it is
        ("XLogFlush", "XLogFlush"),
        ("12_Zeros", "12_Zeros"),
    ],
)
def test_names_of_cpp_are_written_as_people_do(name: str, short: str) -> None:
    assert shorten_name(name) == short


def test_what_neighbours_say_weighs_by_how_near_they_are() -> None:
    def reader(address: int) -> tuple[Reader, ...]:
        return (Reader(address, "f", ()),)

    code = Code({"here": reader(0), "near": reader(100), "far": reader(1_000_000), "nobody": ()})
    near = compare_neighbours({"here": 9.0, "near": 3.0, "far": -3.0, "nobody": 5.0}, code)
    assert 1.5 < near["here"] < 2.1  # of `near`, two thirds
    assert near["far"] == pytest.approx(0, abs=1e-6)
    assert near["nobody"] == 0


@pytest.mark.real
def test_a_call_that_most_functions_make_leads_nowhere(tmp_path: Path) -> None:
    """A message that is flushed says nothing of the functions that may write one."""
    users = "\n".join(f"__attribute__((noinline)) int user{n}(int v) {{ return tell(v + {n}); }}" for n in range(80))
    text = rf"""
#include <unistd.h>
int level = 1;
struct entry {{ const char *name; int *variable; }} table[] = {{{{"work_level", &level}}}};
__attribute__((noinline)) int tell(int file) {{ return fsync(file); }}
__attribute__((noinline)) int work(int v) {{ return level > v ? tell(v) : v; }}
{users}
int main(int count, char **texts) {{
    int sum = work(count) + (int)(long)table[count].name;
    {" ".join(f"sum += user{n}(sum);" for n in range(80))}
    return sum;
}}
"""
    source, made = tmp_path / "server.c", tmp_path / "server"
    source.write_text(text)
    subprocess.run(["gcc", "-O1", "-fPIE", "-pie", "-rdynamic", "-o", made, source], check=True)
    code = read_code(Program(made), {"work_level"})
    assert [(one.name, one.path) for one in code.readers["work_level"]] == [("work", ())]


@pytest.mark.real
def test_a_real_server() -> None:
    """Redis flushes its log a few calls from where it reads `appendfsync`; how it samples keys never gets there."""
    server = shutil.which("redis-server")
    if server is None:
        pytest.skip("redis is not installed")
    code = read_code(Program(Path(server)), {"appendfsync", "maxmemory-samples", "rdb-save-incremental-fsync", "hz"})
    near = code.nearest("appendfsync")
    assert near is not None and near.calls is not None
    assert near.calls <= 2
    assert near.path[-1] in ("fdatasync", "fsync")
    assert "evictionPoolPopulate" in {one.name for one in code.readers["maxmemory-samples"]}
