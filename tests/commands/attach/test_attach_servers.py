"""Real servers, started by hand, under attach: right counts, right names, and nothing about them changed."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from loop_devices import Loop
from servers import Added, Started, diagnose, open_cgroup, start_server

pytestmark = pytest.mark.real

_READS, _WRITES, _FLUSHES = 0, 4, 15  # columns of the device's own sums

_PLACES = [(kind, place) for place in ("own cgroup", "shared cgroup") for kind in ("postgresql", "mariadb", "redis")]
_QUICK = {("postgresql", "own cgroup"), ("redis", "shared cgroup")}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(one, marks=() if one in _QUICK else pytest.mark.long, id=" in its ".join(one)) for one in _PLACES
    ],
)
def place(request: pytest.FixtureRequest) -> tuple[str, str]:
    """A DBMS, and whether its server has a cgroup of its own."""
    kind, cgroup = request.param
    return kind, cgroup


@pytest.fixture(scope="module")
def kind(place: tuple[str, str]) -> str:
    return place[0]


@pytest.fixture(scope="module")
def server(device: Loop, place: tuple[str, str]) -> Iterator[Started]:
    assert device.mount is not None
    kind, cgroup = place
    with contextlib.ExitStack() as stack:
        group = stack.enter_context(open_cgroup("attach-test")) if cgroup == "own cgroup" else None
        yield stack.enter_context(start_server(kind, device.mount, group))


def test_counts_are_those_of_the_device_and_the_server_is_untouched(
    server: Started, device: Loop, tmp_path: Path, kind: str
) -> None:
    untouched = server.describe()
    found, text, added = diagnose(server, device, tmp_path)
    assert server.describe() == untouched
    assert found["server"]["dbms"] == kind
    assert found["server"]["version"]
    is_own = "attach-test" in next(iter(untouched[2]))
    assert (found["server"]["cgroup"] or "").endswith("/inner") == is_own
    rows = {row["op"]: row for row in found["io_profile"]}
    assert added.least[_FLUSHES] <= rows["flush"]["device_requests"] <= added.most[_FLUSHES]
    assert_writes(rows["write"]["device_requests"], added)
    written = rows["write"]
    journal = written["journal_requests"]
    assert written["requests"] + journal >= 0.95 * written["device_requests"], "the device is the server's alone"
    assert rows["flush"]["requests"] >= 90, "every change was durable"
    logs = [file for file in found["busy_files"] if file["purpose"] == "log" and file["op"] == "write"]
    assert logs, "the log has its name"
    assert text.startswith(found["conclusion"])


def test_a_moved_server_goes_back(server: Started, device: Loop, tmp_path: Path) -> None:
    untouched = server.describe()
    found, _, added = diagnose(server, device, tmp_path, "--move")
    assert server.describe() == untouched
    is_shared = found["server"]["cgroup"] is None
    assert found["server"]["is_moved"] == is_shared, "only who has no cgroup of its own is moved"
    writes = next(row for row in found["io_profile"] if row["op"] == "write")
    assert_writes(writes["device_requests"], added)


def assert_writes(counted: int, added: Added) -> None:
    """The kernel counts a flush without data as a write, too."""
    assert added.least[_WRITES] - added.least[_FLUSHES] <= counted <= added.most[_WRITES]
