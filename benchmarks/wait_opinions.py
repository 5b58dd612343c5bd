"""What a DBMS itself says its sessions wait for, sampled while the probe of waits watches them.

Each sample holds, for every session, the DBMS's own wait event and whether the scheduler has the thread running or in
its queue: an event goes on until the thread gets a processor, which the probe counts as `runnable`. A session that
waits for another one is given what that one does in the same sample, as far as the DBMS says who it is.
"""

import os
import random
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from knobscope.watch import Watch
from knobscope.watch.sampling import WaitSampler

#: `flush`: durability, own or through another session; `lock`: all other waits for another session.
CATEGORIES = ("flush", "through", "read", "lock", "cpu", "client", "other")
_MAX_LINKS = 4
_OF_DURABILITY = ("flush", "write", "journal")
_READS = ("read", "fault")
_OWN = ("cpu", "runnable", "preempted")
_SAMPLER_DATABASE = "template1"  # in the title of the sampler's own session

Opinion = dict[str, float]  # category -> share of the sessions' time


@dataclass(frozen=True)
class Sample:
    """A session at one moment. `event`: type and name; `blockers`: whom it waits for, as far as the DBMS says."""

    is_session: bool
    is_running: bool
    event: str
    blockers: tuple[int, ...] = ()


Moment = Mapping[int, Sample]


@dataclass
class Opinions:
    """Shares by who says so, and whether a thread of a profile is a session of the load, not the sampler's."""

    is_session: Callable[[Mapping[str, Any]], bool]
    shares: dict[str, Opinion] = field(default_factory=dict)


class Sampled:
    """A watch in whose windows samplers run, too; `open_sampler` takes the process of the server."""

    def __init__(self, watch: Watch, open_sampler: Callable[[int], AbstractContextManager[Opinions]]) -> None:
        self._watch, self._open = watch, open_sampler
        self._window = ExitStack()
        self._server = 0
        self.opinions: dict[str, Opinion] = {}

    def __getattr__(self, name: str) -> Any:
        """Return what the watch has."""
        return getattr(self._watch, name)

    def follow(self, processes: Sequence[int]) -> None:
        """Follow; the first process is the server."""
        self._server = processes[0]
        self._watch.follow(processes)

    def begin(self) -> None:
        """Start the window and the sampler."""
        self._opinions = self._window.enter_context(self._open(self._server))
        self._looks = WaitSampler([self._server])
        self._watch.begin()
        self._looks.start()

    def end(self) -> Mapping[str, Any]:
        """End both."""
        seen = self._looks.stop()
        self._window.close()
        profile = self._watch.end()
        told = {"probe": profile, "looks, without BPF": seen or {}}
        opinions = {who: summarise_probe(what, self._opinions.is_session) for who, what in told.items()}
        self.opinions = {"probe": opinions.pop("probe"), **self._opinions.shares, **opinions}
        return profile


def summarise_probe(profile: Mapping[str, Any], is_session: Callable[[Mapping[str, Any]], bool]) -> Opinion:
    """Return how the sessions' time is divided, as the probe says."""
    walls = {row["tid"]: row["wall_us"] for row in profile["wait_threads"] if is_session(row)}
    if not walls:
        raise RuntimeError(f"no sessions among {[(row['name'], row['title']) for row in profile['wait_threads']]}")
    sums: dict[str, float] = defaultdict(float)
    for row in profile["waits"]:
        if row["tid"] in walls:
            is_through = row["links"] > 0
            category = _categorise_reason(row["reason"], is_through=is_through)
            sums[category] += row["time_us"]
            sums["through"] += row["time_us"] if is_through and category == "flush" else 0
    return {category: sums[category] / sum(walls.values()) for category in CATEGORIES}


def _categorise_reason(reason: str, *, is_through: bool) -> str:
    if reason in _OF_DURABILITY:
        return "flush"
    if reason in _READS:
        return "read"
    if is_through or reason == "lock":
        return "lock"
    if reason in _OWN:
        return "cpu"
    return "client" if reason == "network" else "other"


def summarise_moments(moments: Sequence[Moment], resolve: Callable[[Moment, int], tuple[str, int]]) -> Opinion:
    """Return the share of each category in the samples of sessions; `resolve`: a category, and through how many."""
    counts: Counter[str] = Counter()
    total = 0
    for moment in moments:
        for session, sample in moment.items():
            if sample.is_session:
                total += 1
                category, links = resolve(moment, session)
                counts[category] += 1
                counts["through"] += category == "flush" and links > 0
    return {category: counts[category] / max(total, 1) for category in CATEGORIES}


# PostgreSQL

# In one statement, so that it sees the sessions as soon as its time has come: while a client asks, their waits end. At
# random moments: each sample makes the sessions wait, and what they do afterwards would repeat itself until the next.
_ACTIVITY = r"""
do $$
declare
    sample text;
    at numeric;
begin
    loop
        perform pg_sleep(0.02 * random()), pg_stat_clear_snapshot();
        at := extract(epoch from clock_timestamp());
        with activity as materialized (
            select pid, (backend_type = 'client backend')::int as is_session, wait_event_type = 'Lock' as is_locked,
                split_part(pg_read_file('/proc/' || pid || '/stat', 0, 200, true), ' ', 3) as state,
                coalesce(wait_event_type || '/' || wait_event, '') as event
            from pg_stat_get_activity(null) where pid <> pg_backend_pid()
        )
        select string_agg(concat_ws(',', at, pid, is_session, state, event,
            coalesce(array_to_string(case when is_locked then pg_blocking_pids(pid) end, ' '), '')
        ), e'\n') into sample from activity;
        raise info e'\n%', sample;
    end loop;
end $$;
"""
_PROFILE = "select pid, event_type || '/' || event, sum(count) from pg_wait_sampling_profile group by 1, 2"
POSTGRESQL_OPTIONS = ("-c", "shared_preload_libraries=pg_wait_sampling", "-c", "pg_wait_sampling.profile_queries=off")
_ALWAYS_WAITING = "Activity/LogicalLauncherMain"  # sampled every time: its count is the number of samples


@contextmanager
def open_postgresql(server: int, password: str) -> Iterator[Opinions]:
    """Yield what will hold the opinions of pg_stat_activity and, if the extension is installed, pg_wait_sampling."""
    arguments = Path(f"/proc/{server}/cmdline").read_text().split("\0")
    host, port = (arguments[arguments.index(option) + 1] for option in ("-k", "-p"))
    psql = ["psql", "-X", "-q", "-A", "-t", "-F", ",", "-h", f"/proc/{server}/root{host}", "-p", port, "-U", "postgres"]
    environment = {"PGPASSWORD": password, "PATH": "/usr/bin:/bin"}
    opinions = Opinions(_is_postgresql_session)

    def ask(query: str) -> str:
        command = [*psql, "-v", "ON_ERROR_STOP=1", "-c", query, _SAMPLER_DATABASE]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    ask("create extension if not exists pg_wait_sampling")
    ask("select pg_wait_sampling_reset_profile()")
    with tempfile.TemporaryFile("w+") as output:
        sampler = subprocess.Popen(
            [*psql, _SAMPLER_DATABASE], env=environment, stdin=subprocess.PIPE, stderr=output, text=True
        )
        assert sampler.stdin is not None
        _hurry(sampler.pid, _find_own_session(server))
        sampler.stdin.write(_ACTIVITY)
        sampler.stdin.flush()
        try:
            yield opinions
        finally:
            sampler.send_signal(signal.SIGINT)  # which cancels the statement
            sampler.stdin.close()
            sampler.wait()
        output.seek(0)
        moments = _read_moments(output)
    opinions.shares["pg_stat_activity"] = summarise_moments(moments, _resolve_postgresql)
    opinions.shares["pg_wait_sampling"] = _read_profile(
        [line.split(",") for line in ask(_PROFILE).splitlines()], moments
    )


def _find_own_session(server: int) -> int:
    """Return the process of the sampler's session; it is the only one with this database."""
    for _ in range(100):
        for process in _list_descendants(server):
            if f" {_SAMPLER_DATABASE} " in _read(process, "cmdline"):
                return process
        time.sleep(0.05)
    raise RuntimeError("the sampler has no session")


def _list_descendants(process: int) -> Iterator[int]:
    """Yield the processes below one; the server is below its keeper."""
    for child in map(int, _read(process, f"task/{process}/children").split()):
        yield child
        yield from _list_descendants(child)


def _read(process: int, file: str) -> str:
    """Return what the kernel says of a process; nothing when it has ended."""
    try:
        return Path("/proc", str(process), file).read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _hurry(*processes: int) -> None:
    """Let the sampler run when its time has come: where it queued, it would see only what those before it leave."""
    for process in processes:
        os.sched_setscheduler(process, os.SCHED_FIFO, os.sched_param(1))


def _read_moments(lines: Any) -> list[Moment]:
    moments: dict[str, dict[int, Sample]] = defaultdict(dict)
    for line in lines:
        fields = line.rstrip("\n").split(",")
        if len(fields) == 6:
            at, pid, is_session, state, event, blockers = fields
            own = Sample(is_session == "1", state == "R", event, tuple(map(int, blockers.split())))
            moments[at][int(pid)] = own
    return list(moments.values())


def _resolve_postgresql(moment: Moment, session: int, links: int = 0) -> tuple[str, int]:
    sample = moment.get(session)
    if sample is None or links > _MAX_LINKS:
        return "lock", links
    if sample.is_running or not sample.event:
        return ("lock" if links else "cpu"), links
    kind = sample.event.partition("/")[0]
    if kind == "Lock" and sample.blockers:
        return _resolve_postgresql(moment, sample.blockers[0], links + 1)
    if sample.event == "LWLock/WALWrite":
        leaders = [own for own in moment.values() if own.event in ("IO/WALSync", "IO/WALWrite")]
        return ("flush" if any(not own.is_running for own in leaders) else "lock"), links + 1
    category = _categorise_event(sample.event)
    return ("lock" if links and category in ("client", "other") else category), links


def _categorise_event(event: str) -> str:
    kind, _, name = event.partition("/")
    if event == "LWLock/WALWrite" or (kind == "IO" and not name.endswith("Read")):
        return "flush"
    if kind == "IO" or event == "IPC/BufferIO":
        return "read"
    if kind in ("Lock", "LWLock", "IPC", "BufferPin"):
        return "lock"
    return "client" if kind == "Client" else "other"


def _read_profile(rows: Sequence[Sequence[str]], moments: Sequence[Moment]) -> Opinion:
    """Return the shares of a profile, which holds no samples of sessions that do not wait."""
    sessions = Counter(pid for moment in moments for pid, own in moment.items() if own.is_session)
    times = sum(int(count) for _, event, count in rows if event == _ALWAYS_WAITING)
    total = times * sessions.total() / len(moments)  # a session that ended early was sampled less often
    sums: dict[str, float] = defaultdict(float)
    for pid, event, count in rows:
        if int(pid) in sessions:
            sums[_categorise_event(event)] += int(count) / total
            sums["through"] += int(count) / total if event == "LWLock/WALWrite" else 0
    sums["cpu"] = 1 - sum(sums[category] for category in CATEGORIES if category != "through")
    return {category: sums[category] for category in CATEGORIES}


def _is_postgresql_session(thread: Mapping[str, Any]) -> bool:
    """Whether a thread of the profile is a session of the load, not that of the sampler."""
    return (
        bool(re.search(r"^postgres: .*\[local\]|\(\d+\)", thread["title"])) and _SAMPLER_DATABASE not in thread["title"]
    )


# MariaDB

_THREADS = """
select t.THREAD_OS_ID, t.PROCESSLIST_ID = connection_id(), t.PROCESSLIST_COMMAND, coalesce(t.PROCESSLIST_STATE, ''),
    case when e.END_EVENT_ID is null or e.EVENT_NAME = 'idle' then coalesce(e.EVENT_NAME, '') else '' end
from performance_schema.threads t left join performance_schema.events_waits_current e using (THREAD_ID)
where t.PROCESSLIST_ID is not null and t.TYPE = 'FOREGROUND' and t.PROCESSLIST_COMMAND <> 'Daemon'; select 'end';
"""
_COMMIT = "Commit"
MARIADB_OPTIONS = (
    "--performance-schema=on",
    "--performance-schema-instrument=wait/%=on",
    "--performance-schema-consumer-events-waits-current=on",
)


@contextmanager
def open_mariadb(server: int) -> Iterator[Opinions]:
    """Yield what will hold the opinion of performance_schema."""
    process = next(child for child in _list_descendants(server) if _read(child, "comm") == "mariadbd\n")
    arguments = Path(f"/proc/{process}/cmdline").read_text().split("\0")
    socket = next(text.partition("=")[2] for text in arguments if text.startswith("--socket="))
    command = ["mariadb", "--no-defaults", "-uroot", f"--socket=/proc/{process}/root{socket}", "-N", "-B", "-n"]
    own_threads: set[int] = set()
    moments: list[Moment] = []
    is_over = threading.Event()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:

        def sample() -> None:
            _hurry(threading.get_native_id(), client.pid)
            threads: dict[int, int] = {}
            while not is_over.wait(random.uniform(0, 0.02)):  # noqa: S311 - no secret
                own, moment = _ask_mariadb(client, process, threads)
                if own not in own_threads:
                    _hurry(own)
                    own_threads.add(own)
                moments.append(moment)

        def is_session(thread: Mapping[str, Any]) -> bool:
            return thread["name"] == "mariadbd" and thread["served"] > 0 and thread["tid"] not in own_threads

        opinions = Opinions(is_session)
        sampler = threading.Thread(target=sample)
        sampler.start()
        try:
            yield opinions
        finally:
            is_over.set()
            sampler.join()
            client.communicate()
    opinions.shares["performance_schema"] = summarise_moments(moments, _resolve_mariadb)


def _ask_mariadb(client: subprocess.Popen[str], process: int, threads: dict[int, int]) -> tuple[int, Moment]:
    """Return the sampler's own thread, and the others; `threads`: number in the server's namespace -> here."""
    assert client.stdin is not None
    assert client.stdout is not None
    client.stdin.write(_THREADS)
    client.stdin.flush()
    rows = [line.rstrip("\n").split("\t") for line in iter(client.stdout.readline, "end\n")]
    if any(int(row[0]) not in threads for row in rows):
        threads |= _number_threads(process)
    own, moment = 0, {}
    for number, is_own, command, state, event in rows:
        tid = threads[int(number)]
        if is_own == "1":
            own = tid
            continue
        letter = Path(f"/proc/{tid}/stat").read_text().rpartition(")")[2].split()[0]
        # Without either it has let go of its transaction, and may not answer before that is durable.
        is_silent = command == "Execute" and not state and not event
        moment[tid] = Sample(True, letter == "R", f"{letter},{_COMMIT if is_silent else state},{event}")
    return own, moment


def _number_threads(process: int) -> dict[int, int]:
    numbers = {}
    for task in Path(f"/proc/{process}/task").iterdir():
        own = re.search(r"^NSpid:.*\s(\d+)$", (task / "status").read_text(), re.MULTILINE)
        assert own is not None
        numbers[int(own[1])] = int(task.name)
    return numbers


def _resolve_mariadb(moment: Moment, session: int) -> tuple[str, int]:
    """Return the category of a session. Only its state says that it waits for the leader of a group commit."""
    sample = moment[session]
    letter, state, event = sample.event.split(",")
    if sample.is_running:
        return "cpu", 0
    if event.endswith("innodb_data_file"):
        return "read", 0
    if state == _COMMIT or event.startswith("wait/io/file"):
        if letter == "D":
            return "flush", 0
        leaders = [own for own in moment.values() if own.event.startswith(f"D,{_COMMIT},")]
        return ("flush" if leaders else "lock"), 1
    return ("client" if event in ("idle", "wait/io/socket/sql/client_connection") else "lock"), 0
