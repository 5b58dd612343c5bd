"""Whether a load generator can drive a DBMS with what a study varies."""

import re
from collections.abc import Iterator, Mapping

from knobscope.specs.models.dbms import Dbms
from knobscope.specs.models.generator import BUILT_IN, TPCC, TPCDS, TPCH, YCSB, Generator
from knobscope.specs.models.lifecycle import SQL_BINDING
from knobscope.specs.models.study import Study
from knobscope.specs.models.workload import Workload
from knobscope.specs.models.ycsb import YCSB_DEFAULTS
from knobscope.specs.reading.base import Value
from knobscope.specs.reading.source import Document, Location, SpecProblem


def check_load(
    document: Document, study: Study, dbms: Dbms, workload: Workload, generators: Mapping[str, Generator]
) -> Iterator[SpecProblem]:
    """Yield why a workload's generator cannot drive a DBMS with the knobs that a study varies."""
    location = ("workloads", workload.name)
    chosen = [name for name in study.knobs.get(dbms.name, {}) if name in dbms.knobs]
    if workload.generator in BUILT_IN:
        title = {YCSB: "YCSB", TPCC: "TPC-C", TPCH: "TPC-H", TPCDS: "TPC-DS"}[workload.generator]
        if dbms.connection is None:
            names = ", ".join(sorted(dbms.generators)) or "none"
            yield document.problem(location, f"{title} for {dbms.name}", f"a workload of its generators: {names}")
        elif workload.generator != YCSB and dbms.connection.binding != SQL_BINDING:
            yield document.problem(location, f"{title} for {dbms.name}", f"a DBMS whose binding is {SQL_BINDING}")
    elif workload.generator in generators:
        if workload.generator not in dbms.generators:
            expected = f"`generators.{workload.generator}` in {dbms.name}.yaml, or a workload of another generator"
            yield document.problem(location, f"{workload.generator}, which {dbms.name} does not mention", expected)
    else:
        return
    yield from _check_fields(document, study, dbms, workload)
    yield from _check_rewrite(document, study, dbms, workload)
    for name in chosen:
        if (writing := dbms.writing_of(name)) is not None and is_unwritable(dbms, name, workload):
            found = f"a knob that is written by `{writing.kind}`, which {workload.generator} cannot pass on"
            yield document.problem(("knobs", dbms.name, name), found, "another knob, or another generator")


def _check_fields(document: Document, study: Study, dbms: Dbms, workload: Workload) -> Iterator[SpecProblem]:
    """Yield more fields of YCSB than the table of a DBMS has columns for."""
    columns = set(re.findall(r"\bfield\d+\b", " ".join(dbms.loading.tables), re.IGNORECASE))
    if workload.generator != YCSB or not columns:
        return
    for location, count in _values_of("fieldcount", study, workload).items():
        if isinstance(count, int) and count > len(columns):
            expected = f"at most {len(columns)}, for which the table of {dbms.name} has columns"
            yield document.problem(location, f"{count} fields", expected)


def _check_rewrite(document: Document, study: Study, dbms: Dbms, workload: Workload) -> Iterator[SpecProblem]:
    """Yield rewrites of the table of a DBMS whose spec does not say how."""
    for location, value in _values_of("rewrite", study, workload).items():
        if value is True and not dbms.rewrite:
            expected = f"`rewrite` in {dbms.name}.yaml, the statements that store its table anew"
            yield document.problem(location, f"a rewrite of the table of {dbms.name}", expected)


def _values_of(parameter: str, study: Study, workload: Workload) -> dict[Location, Value]:
    """Return the values of a parameter of YCSB that a workload has and a study varies, by their places in the study."""
    location: Location = ("factors", "workload", parameter)
    varied = {(*location, index): value for index, value in enumerate(study.factors.workload.get(parameter, []))}
    return {("workloads", workload.name): workload.parameters.get(parameter, YCSB_DEFAULTS[parameter]), **varied}


def is_unwritable(dbms: Dbms, knob: str, workload: Workload) -> bool:
    """Whether the generator of a workload cannot hand a knob over in the way in which it is written."""
    writing = dbms.writing_of(knob)
    if writing is None or writing.file is not None:
        return False
    if workload.generator in BUILT_IN:
        return dbms.lifecycle is None and writing.kind in ("argv", "by_value", "variable")
    return writing.kind in ("sql", "client")
