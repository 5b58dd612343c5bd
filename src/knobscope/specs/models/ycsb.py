"""The properties of YCSB's CoreWorkload (0.17.0), two of ours, and what each takes; YCSB ignores unknown ones."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from knobscope.specs.reading.base import Misfit, Value, suggest
from knobscope.specs.reading.source import show_value
from knobscope.units import propose_number

#: The operation mix, with the defaults that hold for a part that is left out.
_MIX = {
    "readproportion": 0.95,
    "updateproportion": 0.05,
    "insertproportion": 0.0,
    "scanproportion": 0.0,
    "readmodifywriteproportion": 0.0,
}
#: Words that a property takes; YCSB ends with an exception at others, or goes on with its default.
_WORDS = {
    "requestdistribution": ("uniform", "sequential", "zipfian", "latest", "hotspot", "exponential"),
    "scanlengthdistribution": ("uniform", "zipfian"),
    "fieldlengthdistribution": ("constant", "uniform", "zipfian"),
    "insertorder": ("hashed", "ordered"),
    "load_order": ("shuffled", "ordered", "threads"),
}
_FLAGS = ("dataintegrity", "readallfields", "readallfieldsbyname", "rewrite", "writeallfields")
_COUNT = (int, 1, 2**31 - 1)
_SHARE = (int | float, 0, 1)
#: Numbers: their type, the smallest and the largest.
_NUMBERS: dict[str, tuple[Any, int, int]] = {
    "core_workload_insertion_retry_interval": (int, 0, 2**31 - 1),
    "core_workload_insertion_retry_limit": (int, 0, 2**31 - 1),
    **dict.fromkeys(("fieldcount", "fieldlength", "maxscanlength", "minfieldlength", "minscanlength"), _COUNT),
    "zeropadding": (int, 1, 1000),
    "exponential.percentile": (int | float, 1, 99),
    **dict.fromkeys(("hotspotdatafraction", "hotspotopnfraction", "exponential.frac", *_MIX), _SHARE),
}
#: Names of the table and of its columns; the tables are made by the spec of the DBMS, with the usual names.
_TEXTS = ("fieldnameprefix", "table")
#: Properties other than the mix with the values that hold where a workload states none.
YCSB_DEFAULTS: Mapping[str, Value] = {
    "fieldcount": 10,
    "fieldlength": 100,
    "minfieldlength": 1,
    "fieldlengthdistribution": "constant",
    "requestdistribution": "uniform",
    "minscanlength": 1,
    "maxscanlength": 1000,
    "scanlengthdistribution": "uniform",
    "hotspotdatafraction": 0.2,
    "hotspotopnfraction": 0.8,
    "insertorder": "hashed",
    "load_order": "shuffled",
    "rewrite": False,
    "readallfields": True,
    "writeallfields": False,
}
_KNOWN = sorted([*_WORDS, *_FLAGS, *_NUMBERS, *_TEXTS])


def find_wrong_properties(parameters: Mapping[str, Value]) -> Iterator[Misfit]:
    """Yield properties that YCSB does not know, values that it does not take, and a mix that does not add up."""
    wrong = False
    for name, value in parameters.items():
        expected = _expected(name, value)
        if expected is not None:
            wrong = wrong or name in _MIX or name not in _KNOWN
            found = show_value(value) if name in _KNOWN else "an unknown property"
            yield Misfit(("parameters", name), found, expected)
    mix = {name: parameters.get(name, default) for name, default in _MIX.items()}
    if not wrong and not math.isclose(sum(map(float, mix.values())), 1):
        shown = ", ".join(f"{name} {share}" for name, share in mix.items() if share)
        yield Misfit(("parameters",), f"the mix {shown}", "proportions that add up to 1, all of them stated")


def _expected(name: str, value: Value) -> str | None:
    """Say what a property takes instead of this value, None when it takes it."""
    if name in _WORDS:
        return None if value in _WORDS[name] else suggest(value, list(_WORDS[name]))
    if name in _FLAGS:
        return None if isinstance(value, bool) else "true or false"
    if name in _TEXTS:
        return None if isinstance(value, str) and value.isidentifier() else "a name"
    if name not in _NUMBERS:
        return suggest(name, _KNOWN)
    kind, low, high = _NUMBERS[name]
    is_number = isinstance(value, kind) and not isinstance(value, bool)
    unit = "B" if name.endswith("fieldlength") else None
    hint = propose_number(value, unit, kilo=1000 if unit is None else 1024, is_whole=kind is int)
    return None if is_number and low <= float(value) <= high else f"a number from {low} to {high}{hint}"
