"""Settings of the workload as knobs: a study may vary threads, records or the share of reads like knobs.

Each becomes a knob `workload.SETTING` of every DBMS of the study, whose default is what the workload says. So plans,
rankings, interactions and effects treat it as they treat knobs. What it does is no property of the DBMS: rules find no
mismatch in it, and tuners leave it alone. Half of "On the Feasibility and Benefits of Extensive Evaluation" (SIGMOD
2024) is about such settings.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from knobscope.specs.models.dbms import Dbms
from knobscope.specs.models.generator import TPCC, TPCDS, TPCH, YCSB, Generator
from knobscope.specs.models.knob import Knob
from knobscope.specs.models.study import Study
from knobscope.specs.models.tpcc import TPCC_DEFAULTS
from knobscope.specs.models.workload import Workload, factor_knob, is_workload_knob
from knobscope.specs.models.writing import same_value
from knobscope.specs.models.ycsb import YCSB_DEFAULTS
from knobscope.specs.reading.base import Value, suggest
from knobscope.specs.reading.source import Document, Location, SpecProblem, show_value
from knobscope.specs.reading.validate import explain_first

#: Keys of a workload that are settings of their own; all others are parameters of its generator.
_KEYS = ("threads", "records", "cold")
#: The share of reads among reads and updates: YCSB has a proportion for each, which have to add up to 1.
_READ_SHARE, _READS, _UPDATES = "read_share", "readproportion", "updateproportion"
#: Parameters of the built-in generators, by how they begin, that shape the data; the others shape what is done with it.
_DATA_PARAMETERS = (
    "field",
    "minfield",
    "insert",
    "zeropadding",
    "dataintegrity",
    "table",
    "scale",
    "load_order",
    "rewrite",
)
#: Parameters of the built-in generators with the values that hold where a workload states none.
_DEFAULTS: Mapping[str, Mapping[str, Value]] = {YCSB: YCSB_DEFAULTS, TPCC: TPCC_DEFAULTS}
#: Where the settings of the built-in generators are described.
_SOURCES = {
    YCSB: "https://github.com/brianfrankcooper/YCSB/wiki/Core-Properties",
    TPCC: "https://www.tpc.org/tpcc/",
    TPCH: "https://www.tpc.org/tpch/",
    TPCDS: "https://www.tpc.org/tpcds/",
}
#: Who varied such settings first, where neither workload nor generator names a page.
_IDEA = "https://github.com/huiyujie/ExtensiveEval"


def shapes_data(generator: Generator | None, parameter: str) -> bool:
    """Whether data is loaded anew for another value of a parameter; the generator is None for a built-in one."""
    return parameter in generator.load_parameters if generator else parameter.startswith(_DATA_PARAMETERS)


def split_configuration(
    workload: Workload, configuration: Mapping[str, Value]
) -> tuple[Workload, dict[str, Value], dict[str, Value]]:
    """Return the workload as a configuration sets it, the knobs of the DBMS, and those of the workload."""
    factors = {name: value for name, value in configuration.items() if is_workload_knob(name)}
    for name, value in factors.items():
        workload = _change(workload, name.removeprefix(factor_knob("")), value)
    return workload, {name: value for name, value in configuration.items() if name not in factors}, factors


def _change(workload: Workload, setting: str, value: Value) -> Workload:
    """Return the workload with another value of a setting; raises ValidationError for one that it cannot have."""
    document: dict[str, Any] = workload.model_dump(by_alias=True)
    if setting in _KEYS:
        document[setting] = value
    elif setting == _READ_SHARE:
        share = value if isinstance(value, int | float) else 0
        document["parameters"] |= {_READS: value, _UPDATES: round(1 - share, 9)}
    else:
        document["parameters"][setting] = value
    return Workload.model_validate(document)


def _read(workload: Workload, setting: str) -> Value | None:
    """Return the value of a setting in the workload itself; None when it does not say one."""
    if setting in _KEYS:
        value: Value = getattr(workload, setting)
        return value
    if setting == _READ_SHARE:
        mix = {name: share for name, share in workload.parameters.items() if name.endswith("proportion") and share}
        return mix.get(_READS, 0) if set(mix) <= {_READS, _UPDATES} else None
    return workload.parameters.get(setting)


def _known(workload: Workload) -> list[str]:
    mix = [_READ_SHARE] if workload.generator == YCSB and _read(workload, _READ_SHARE) is not None else []
    return [*_KEYS, *mix, *(name for name in workload.parameters if not name.endswith("proportion"))]


def _state_defaults(workload: Workload, generators: Mapping[str, Generator]) -> Workload:
    """Return a workload that states all parameters whose defaults are known."""
    generator = generators.get(workload.generator)
    defaults = generator.parameters if generator else _DEFAULTS.get(workload.generator, {})
    return workload.model_copy(update={"parameters": {**defaults, **workload.parameters}})


def check_factors(
    document: Document, study: Study, stated: Collection[Workload], generators: Mapping[str, Generator]
) -> Iterator[SpecProblem]:
    """Yield settings that a workload of the study does not have, or has with another default, and impossible values."""
    workloads = [_state_defaults(workload, generators) for workload in stated]
    for setting, values in study.factors.workload.items():
        location: Location = ("factors", "workload", setting)
        unknown = next((workload for workload in workloads if setting not in _known(workload)), None)
        if unknown is not None:
            found = f"a setting that {unknown.name} does not have"
            yield document.problem(location, found, suggest(setting, _known(unknown)))
            continue
        usual = {workload.name: _read(workload, setting) for workload in workloads}
        if len(set(usual.values())) > 1:
            shown = ", ".join(f"{show_value(value)} in {name}" for name, value in usual.items())
            yield document.problem(location, shown, "workloads that begin with the same value, which is the default")
            continue
        default = next(iter(usual.values()), None)
        if default is not None and all(same_value(value, default) for value in values):
            found = f"{show_value(default)} alone, which the workload has"
            yield document.problem(location, found, "at least one other value")
        yield from _check_values(document, location, workloads, generators, setting, values)


def _check_values(
    document: Document,
    location: Location,
    workloads: Collection[Workload],
    generators: Mapping[str, Generator],
    setting: str,
    values: list[Value],
) -> Iterator[SpecProblem]:
    for index, value in enumerate(values):
        for workload in workloads:
            generator = generators.get(workload.generator)
            if generator is not None and (expected := generator.expected_of(setting, value)) is not None:
                yield document.problem((*location, index), show_value(value), expected)
                break
            try:
                _change(workload, setting, value)
            except ValidationError as error:
                yield document.problem((*location, index), show_value(value), explain_first(error))
                break


def spread_factors(
    study: Study, dbms: Dbms, workloads: Collection[Workload], generators: Mapping[str, Generator]
) -> tuple[Study, Dbms]:
    """Return a study that was checked and one of its DBMSs, with the study's factors as knobs of it."""
    workloads = [_state_defaults(workload, generators) for workload in workloads]
    sources = _SOURCES | {
        name: generator.source for name, generator in generators.items() if generator.source is not None
    }
    knobs = {
        factor_knob(setting): _make_knob(setting, values, workloads, generators, sources)
        for setting, values in study.factors.workload.items()
    } | study.factors.kernel_knobs()
    if not knobs:
        return study, dbms
    varied = {**study.knobs.get(dbms.name, {}), **dict.fromkeys(knobs)}
    study = study.model_copy(update={"knobs": {**study.knobs, dbms.name: varied}})
    return study, dbms.model_copy(update={"knobs": {**dbms.knobs, **knobs}})


def _is_loaded(generator: Generator | None, setting: str) -> bool:
    return setting == "records" if setting in _KEYS else shapes_data(generator, setting)


def _make_knob(
    setting: str,
    values: list[Value],
    workloads: Collection[Workload],
    generators: Mapping[str, Generator],
    sources: Mapping[str, str],
) -> Knob:
    first = next(iter(workloads))
    default = _read(first, setting)
    assert default is not None, setting  # noqa: S101 - the checks of the study saw to it
    listed = values if any(same_value(value, default) for value in values) else [default, *values]
    if not any(isinstance(value, str) for value in listed):
        listed = sorted(listed)
    return Knob(
        type="enum",
        values=listed,
        default=default,
        apply="load"
        if any(_is_loaded(generators.get(workload.generator), setting) for workload in workloads)
        else "restart",
        mechanism="workload",
        description=f"`{setting}` of the workload.",
        source=first.source or sources.get(first.generator, _IDEA),
    )
