"""Knobs that are written to the same place: the last of them would win, the others say nothing."""

from collections.abc import Iterator

from knobscope.specs.models.dbms import Dbms
from knobscope.specs.reading.base import Misfit


def find_overwritten(dbms: Dbms) -> Iterator[Misfit]:
    """Yield knobs that replace what another one says: in a property, a variable, a key of a file, or by their name."""
    writers: dict[tuple[str, str, str], list[str]] = {}
    for name in dbms.knobs:
        if (target := _target_of(dbms, name)) is not None:
            writers.setdefault(target, []).append(name)
    for (kind, _, text), names in writers.items():
        for name in names if len(names) > 1 else []:
            if kind in ("client", "variable") and _adds(dbms, name):
                continue
            other_knobs = " and ".join(knob for knob in names if knob != name)
            found = f"`{kind}` {text!r}, to which {other_knobs} is written, too"
            each = "{property} in `value` of each, so that one adds to the other"
            location = ("knobs", name, *(("writing", kind) if dbms.knobs[name].writing else ("alias",)))
            yield Misfit(location, found, each if kind in ("client", "variable") else "another one")


def _adds(dbms: Dbms, knob: str) -> bool:
    """Whether a knob keeps what its property says already."""
    writing = dbms.writing_of(knob)
    return writing is not None and "{property}" in writing.value


def _target_of(dbms: Dbms, knob: str) -> tuple[str, str, str] | None:
    """Return kind, file and text of what a knob is written to, None where `by_value` writes any number of things."""
    writing = dbms.writing_of(knob)
    if writing is None or writing.kind == "by_value":
        return None
    text = writing.argv if writing.argv is not None else [getattr(writing, writing.kind)]
    written = " ".join(text).replace("{knob}", dbms.knobs[knob].alias or knob)
    return (writing.kind, writing.file or "", written)
