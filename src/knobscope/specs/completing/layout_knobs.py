"""A study's layout, as knobs: which part of the data lies on which device is a choice like any other.

A part with a list of devices becomes a knob `device.PART` that the study varies, a part with one device a value of its
baseline. So plans, effects, rankings and tuners treat a layout as they treat knobs, and need to know nothing of it.
"""

from collections.abc import Iterator

from knobscope.specs.models.dbms import Dbms
from knobscope.specs.models.device import Device
from knobscope.specs.models.knob import Knob
from knobscope.specs.models.part import WITH_DATA, Part, part_knob
from knobscope.specs.models.study import Study
from knobscope.specs.reading.base import suggest
from knobscope.specs.reading.source import Document, Location, SpecProblem


def name_devices(study: Study, dbms: str | None = None) -> dict[str, Location]:
    """Return the devices of the layout, or of that of one DBMS, with the first location that names each."""
    locations: dict[str, Location] = {}
    for owner, parts in study.layout.items():
        for part, named in parts.items() if dbms in (None, owner) else ():
            for device in named if isinstance(named, list) else [named]:
                locations.setdefault(device, ("layout", owner, part))
    return locations


def check_layout(document: Document, study: Study, dbms: Dbms) -> Iterator[SpecProblem]:
    """Yield parts of a layout that the DBMS does not have."""
    for name in study.layout.get(dbms.name, {}):
        location: Location = ("layout", dbms.name, name)
        kind, dot, _ = name.partition(".")
        part = dbms.parts.get(kind)
        if part is None:
            known_parts = sorted(dbms.parts)
            expected = suggest(kind, known_parts) if known_parts else "no layout: its spec has no `parts`"
            yield document.problem(location, f"an unknown part of {dbms.name}", expected)
        elif part.is_named != bool(dot):
            expected = f"{kind}.NAME: it says of what" if part.is_named else f"{kind}: there is only one"
            yield document.problem(location, repr(name), expected)


def check_layout_devices(document: Document, study: Study, devices: dict[str, Device]) -> Iterator[SpecProblem]:
    """Yield devices of a layout that others use too: what they are asked for could not be distinguished there."""
    for name, location in name_devices(study).items():
        if name in devices and not devices[name].is_dedicated:
            found = f"{name}, which is not the DBMS's alone"
            yield document.problem(location, found, "an emulated device, or one with `dedicated: true`")


def spread_layout(study: Study, dbms: Dbms) -> tuple[Study, Dbms]:
    """Return a study that was checked and one of its DBMSs, with the layout of that one as knobs and baseline.

    The DBMS keeps those parts only that the study lays out, each by the name that the study gives it.
    """
    chosen = study.layout.get(dbms.name, {})
    parts = {name: _fill(name, dbms.parts[name.partition(".")[0]]) for name in chosen}
    varied = {part_knob(name): None for name, named in chosen.items() if isinstance(named, list)}
    fixed = {part_knob(name): named for name, named in chosen.items() if isinstance(named, str)}
    knobs = {
        part_knob(name): _make_knob(name, parts[name], named if isinstance(named, list) else [named])
        for name, named in chosen.items()
    }
    if chosen:
        changes = {
            key: {**getattr(study, key), dbms.name: {**getattr(study, key).get(dbms.name, {}), **more}}
            for key, more in (("knobs", varied), ("baseline", fixed))
        }
        study = study.model_copy(update=changes)
    files = dbms.files.with_tables(*(pattern for part in parts.values() if part.load for pattern in part.files))
    return study, dbms.model_copy(update={"parts": parts, "knobs": {**dbms.knobs, **knobs}, "files": files})


def _fill(name: str, part: Part) -> Part:
    """Return a part with its name in the study put into its statements; where it will lie is known later."""
    if part.load is None:
        return part

    def fill(text: str) -> str:
        return text.replace("{part}", name).replace("{name}", name.partition(".")[2])

    texts = {
        "load": [fill(text) for text in part.load],
        "pointer": fill(part.pointer) if part.pointer else None,
        "session": [fill(text) for text in part.session] if part.session else None,
        "knob": fill(part.knob) if part.knob else None,
    }
    return part.model_copy(update=texts)


def _make_knob(name: str, part: Part, devices: list[str]) -> Knob:
    return Knob(
        type="enum",
        values=[WITH_DATA, *devices],
        default=WITH_DATA,
        apply="restart",
        mechanism="layout",
        description=f"Device of a part of the data ({name}): {part.description}",
        source=part.source,
    )
