"""The studies that are disturbed: as small as they can be with every stage in them."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Study:
    """A study, with what of it can be disturbed."""

    dbms: str
    knobs: str
    server: str | None  # command name of its server
    device: str = "local-disk"
    more: str = ""
    prefix: tuple[str, ...] = ()  # of the command that calls it

    @property
    def text(self) -> str:
        """The spec. All knobs are swept, so that what is planned depends on no measured figure."""
        return f"""
name: tiny
description: the smallest study that has every part
dbms: [{self.dbms}]
devices: [{self.device}]
workloads:
  ycsb-a: {{records: 300, threads: 1, warmup_s: 0.1, measure_s: 0.5{self.more}}}
knobs:
  {self.dbms}:
{self.knobs}
sampling: {{runs_per_round: 4, max_rounds: 1}}
screening: {{threshold: 0.5, top: 1}}
sweep: {{repeats: 2, always: [{", ".join(line.split(":")[0].strip() for line in self.knobs.splitlines())}]}}
"""


_SQLITE = "    synchronous: {values: [off, full]}"
_REDIS = "    appendfsync: {values: [always, no]}"
_POSTGRESQL = "    fsync: {values: [true, false]}"
#: Without this capability a server gets no network of its own, as if an ordinary user had called.
_NO_NETWORKS = ("setpriv", "--inh-caps=-sys_admin", "--bounding-set=-sys_admin")
STUDIES = {
    "sqlite": Study("sqlite", _SQLITE, None),
    "sqlite-limited": Study("sqlite", _SQLITE, None, more=", memory_mib: 512"),
    "sqlite-loop": Study("sqlite", _SQLITE, None, device="small"),
    "redis": Study("redis", _REDIS, "redis-server"),
    "redis-upgraded": Study("redis", _REDIS, "redis-server"),  # what the upgraded one is compared with
    "postgresql": Study("postgresql", _POSTGRESQL, "postgres"),
    "postgresql-ports": Study("postgresql", _POSTGRESQL, "postgres", prefix=_NO_NETWORKS),
}


def start_call(
    study: Study, project: Path, temporary: Path, output: IO[str], more: dict[str, str]
) -> subprocess.Popen[str]:
    """Start Snakemake on the study of a project, in a session of its own."""
    command = [
        *("choom", "-n", "500", "--"),  # the trial itself is not the one to be killed for memory
        *study.prefix,
        *(sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--directory", str(project)),
        *("--profile", str(ROOT / "profiles/default"), "--cores", "2", "--config", "study=specs/studies/tiny.yaml"),
    ]
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        text=True,
        cwd="/",
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(temporary), "XDG_CACHE_HOME": str(temporary.parent), **more},
    )
