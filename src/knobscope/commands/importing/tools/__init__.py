"""Results of other tools as a table with a row per run, which `rank`, `replay` and `trend` read.

A tuner changes several knobs at once, so its trials are no study of single knobs.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from knobscope.commands.importing.tools.benchbase import read_benchbase
from knobscope.commands.importing.tools.hammerdb import read_hammerdb
from knobscope.commands.importing.tools.mlos import read_mlos
from knobscope.commands.importing.tools.optuna import read_optuna
from knobscope.commands.importing.tools.reports import read_pgbench, read_sysbench
from knobscope.commands.importing.tools.runs import ToolRuns

#: Tool -> reader of its files; the second argument says which study or experiment of a storage, None the only one.
TOOLS: dict[str, Callable[[Sequence[Path], str | None], ToolRuns]] = {
    "optuna": read_optuna,
    "mlos_bench": read_mlos,
    "benchbase": read_benchbase,
    "hammerdb": read_hammerdb,
    "pgbench": read_pgbench,
    "sysbench": read_sysbench,
}
