"""What each field of a spec decides: the only table of what loaded data, runs, plans and verdicts depend on.

Hashes of runs and of loaded data and what Snakemake compares (`params`) are made of it. A field that is in no class is
an error as soon as its model is used, so a new field cannot be forgotten. A model without an entry belongs whole to
whatever the field that holds it decides.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal

from knobscope.specs.models.client_host import ClientHost
from knobscope.specs.models.dbms import Dbms
from knobscope.specs.models.device import Device
from knobscope.specs.models.file_patterns import Files
from knobscope.specs.models.generator import Generator
from knobscope.specs.models.knob import Knob
from knobscope.specs.models.lifecycle import Lifecycle
from knobscope.specs.models.study import Sampling, Screening, Study, Sweep
from knobscope.specs.models.workload import Workload
from knobscope.specs.reading.base import SpecModel

#: data: a loaded data directory (and with it every run on it); run: what is measured and recorded; traced_run: a run
#: whose requests are kept; profile: the device profile; plan, sweep: the plans of screening and of the sweep; fit:
#: the ranking; prior: a ranking taken from an earlier study; reinforce: how often the sweep measures; tune: tuners;
#: verdict: effects and findings; remeasure: runs on what-if devices; report: words of the report only. "nothing": where
#: something is found, what a study may ask for, which jobs there are.
Product = Literal[
    "data",
    "run",
    "traced_run",
    "profile",
    "plan",
    "sweep",
    "fit",
    "prior",
    "reinforce",
    "tune",
    "verdict",
    "remeasure",
    "report",
    "nothing",
]

#: What comes of runs that are all there.
_LATE = {"verdict", "remeasure", "report"}
_Choice = Callable[[type[SpecModel]], frozenset[str]]

#: Model -> products -> fields.
FIELDS: Mapping[type[SpecModel], Mapping[str, str]] = {
    Dbms: {
        "data": "name environment version version_sql lifecycle config_files writing booleans readback connection "
        "loading generators",
        "data run": "files",
        "data run plan sweep tune verdict report": "knobs",
        "plan sweep tune": "clashes",
        "prior": "major_version_parts",
        "report": "description",
        # What programs and paths lead to is in the digests of `installed`; parts count that a study lays out.
        # Threads count where waits are watched, statements where they are measured, `rewrite` where a load does, the
        # thread of a session where requests are traced.
        "nothing": "extends without programs paths since until introspect min_memory_mib parts threads statements "
        "rewrite session_thread",
    },
    # Where it logs to changes nothing.
    Lifecycle: {"data": "init start ready ready_timeout_s setup stop discard", "nothing": "log"},
    Files: {"run": "data log temp", "data run": "tables"},
    Knob: {
        "data run": "alias unit apply writing reads_back readable",
        "plan sweep tune": "type range range_is values default scale special requires refused becomes",
        "sweep": "when",
        "tune verdict": "durability",
        "verdict": "control expect mechanism proposal",
        "report": "description source built_in",
        "nothing": "since until category",
    },
    Device: {
        "run profile": "name path emulate like change",
        "profile": "tier",
        "run": "dedicated",
        "report": "description source",
        # A precondition is added where there is one; to read a temperature changes nothing.
        "nothing": "precondition health renamed",
    },
    Workload: {
        "data": "generator records parameters",
        "run": "name threads warmup_s measure_s memory_mib max_failed_share cold",
        "run prior": "class_",
        "verdict": "read_order",
        "report": "description source",
        # An end of the window by operations is added where there is one.
        "nothing": "measure_operations",
    },
    Generator: {
        "data": "name parameters files load",
        "run": "run bound warmup_requests parser",
        "nothing": "description programs paths record_bytes source",
    },
    Study: {
        "run": "name monitor watch",
        "traced_run": "trace",
        "run plan sweep fit tune": "seed",
        "plan sweep tune": "knobs baseline",
        "plan sweep": "sampling",
        "fit prior": "screening",
        "sweep reinforce": "sweep",
        "tune": "tune",
        "profile": "characterise",
        "verdict": "rules thresholds",
        "remeasure": "remeasure",
        "report": "description",
        # A layout and factors become knobs, and values of the baseline, when a study is loaded; a client elsewhere is
        # added where there is one, and so is what is measured in addition to the load.
        "nothing": "dbms devices workloads budget layout factors client measure",
    },
    # How one gets there changes nothing.
    ClientHost: {"run": "host", "nothing": "user port identity known_hosts directory"},
    # A share of varied knobs is added where not all are.
    Sampling: {"plan sweep": "method levels runs_per_round block_runs", "nothing": "max_rounds varied"},
    # Plans of later rounds may go by the response, too; what was planned by another one stays good to be measured.
    Screening: {
        "fit": "model response threshold splits stop stable_rounds warm_start",
        "fit prior": "top",
        "prior": "prior",
    },
    Sweep: {"sweep": "always pairs", "sweep reinforce": "repeats", "reinforce": "most effect power"},
}


@cache
def _fields_of(model: type[SpecModel], product: Product) -> frozenset[str]:
    classes = FIELDS[model]
    classified = [name for names in classes.values() for name in names.split()]
    if sorted(classified) != sorted(model.model_fields):
        wrong = sorted(set(classified) ^ set(model.model_fields)) or "a field twice"
        raise TypeError(f"{__name__} does not say once what each field of {model.__name__} decides: {wrong}")
    return frozenset(
        name for products, names in classes.items() if product in products.split() for name in names.split()
    )


@cache
def _fields_before_verdicts(model: type[SpecModel]) -> frozenset[str]:
    late = {name for products, names in FIELDS[model].items() if {*products.split()} <= _LATE for name in names.split()}
    return frozenset(model.model_fields.keys() - late)


def select_fields(spec: SpecModel, product: Product) -> dict[str, Any]:
    """Return those fields of a spec that decide on a product, as JSON can hold them."""
    return _select_of(spec, lambda model: _fields_of(model, product))


def select_before_verdicts(spec: SpecModel) -> dict[str, Any]:
    """Return those fields of a spec that decide on more than verdicts and what follows them, as JSON can hold them."""
    return _select_of(spec, _fields_before_verdicts)


def _select_of(spec: SpecModel, choose: _Choice) -> dict[str, Any]:
    return {name: _select(getattr(spec, name), choose) for name in sorted(choose(type(spec)))}


def _select(value: Any, choose: _Choice) -> Any:
    if isinstance(value, SpecModel):
        return _select_of(value, choose) if type(value) in FIELDS else value.model_dump(mode="json")
    if isinstance(value, dict):
        return {str(key): _select(inner, choose) for key, inner in value.items()}
    if isinstance(value, list):
        return [_select(inner, choose) for inner in value]
    return value
