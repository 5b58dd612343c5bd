"""The shipped list of all knobs of a DBMS, as `knobscope introspect` wrote it: `specs/dbms/catalogue/DBMS.json`.

A study takes what it names from there when the spec does not describe the knob itself; the rest is never looked at, so
that the list costs nothing and the spec's own knobs remain those that somebody has thought about.
"""

import json
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from pydantic import Field

from knobscope.specs.models.dbms import Dbms, KnobName
from knobscope.specs.models.knob import Knob
from knobscope.specs.reading.base import Name, SpecModel
from knobscope.specs.reading.json_file import read_json_file


class KnobCatalogue(SpecModel):
    """All knobs of one version of a DBMS, in its own words."""

    dbms: Name = Field(description="DBMS, by the name of its file.")
    version: str = Field(description="Version that was asked.")
    asked: str = Field(description="Day on which it was asked.")
    left_out: dict[str, list[str]] = Field(description="Reason -> settings that are no knobs.")
    knobs: dict[KnobName, Knob] = Field(description="As under `knobs` of a spec.")

    @property
    def settings(self) -> set[str]:
        """All settings of the DBMS, those too that are no knobs."""
        return {*self.knobs, *(name for names in self.left_out.values() for name in names)}


def catalogue_file(spec: Path) -> Path:
    """Return where the catalogue of a DBMS spec lies: in the folder `catalogue` next to it."""
    return spec.absolute().parent / "catalogue" / f"{spec.stem}.json"


def read_knob_catalogue(path: Path) -> KnobCatalogue | None:
    """Return a catalogue, None when there is no such file; raises SpecErrors for one that cannot be used."""
    if not path.is_file():
        return None
    expected = "a file that `knobscope introspect DBMS --out FILE.json` wrote"
    return read_json_file(path, KnobCatalogue, expected, _restore_numbers)


def _restore_numbers(entry: dict[str, Any]) -> dict[str, Any]:
    """Turn the keys of `special` back into numbers: JSON has text keys only."""
    special = entry.get("special")
    if not isinstance(special, dict):
        return entry
    return {**entry, "special": {json.loads(value): meaning for value, meaning in special.items()}}


def add_named_knobs(dbms: Dbms, spec: Path, names: Collection[str]) -> tuple[Dbms, list[str]]:
    """Do as `take_named_knobs`, with the catalogue next to a spec; it is read only when a name is missing from that."""
    catalogue = None if dbms.knobs.keys() >= set(names) else read_knob_catalogue(catalogue_file(spec))
    return take_named_knobs(dbms, catalogue, names)


def take_named_knobs(dbms: Dbms, catalogue: KnobCatalogue | None, names: Iterable[str]) -> tuple[Dbms, list[str]]:
    """Return the DBMS with those of the named knobs that only its catalogue has, and all names to choose from.

    A knob under `without` is not taken, nor one whose `apply` the spec's `writing` does not cover.
    """
    missing = [name for name in names if name not in dbms.knobs]
    if catalogue is None or not missing:
        return dbms, sorted(dbms.knobs)
    candidates = {
        name: knob
        for name, knob in catalogue.knobs.items()
        if name not in dbms.without and name not in dbms.knobs and _can_write(dbms, knob)
    }
    added = {name: candidates[name] for name in missing if name in candidates}
    return dbms.model_copy(update={"knobs": {**dbms.knobs, **added}}), sorted({*dbms.knobs, *candidates})


def _can_write(dbms: Dbms, knob: Knob) -> bool:
    """Whether `writing` of the spec covers a knob of which only the catalogue tells."""
    writing = dbms.writing.get(knob.apply)
    return writing is not None and writing.by_value is None
