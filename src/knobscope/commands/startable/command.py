"""`knobscope startable`: finds and records the values with which a DBMS starts, of knobs or of a whole study."""

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

from knobscope.commands.startable.asked import asked_range, is_numeric, numeric_knobs
from knobscope.commands.startable.drawn import try_study
from knobscope.commands.startable.search import NothingStartsError, Refused, search_range
from knobscope.commands.startable.trials import Trials, open_trials
from knobscope.durable_files import write_json
from knobscope.errors import UserError
from knobscope.processes import follow_pipeline
from knobscope.specs import (
    Dbms,
    KnobCatalogue,
    Refusal,
    RefusedSetting,
    StartableKnob,
    StartableRecord,
    add_named_knobs,
    catalogue_file,
    load_study,
    major_version,
    read_knob_catalogue,
    read_record,
    read_spec,
    suggest,
)
from knobscope.specs.reading.arguments import find_spec, find_study

_TRIALS = 500
#: A range that spans this much is bisected by order of magnitude, whatever the spec says of its scale.
_WIDE = 10


def _run(args: argparse.Namespace) -> int:
    follow_pipeline()
    if args.study is not None:
        return _run_study(args)
    if args.trials is not None:
        raise UserError("--trials: found no --study; expected --study STUDY, whose configurations are tried")
    path = find_spec("DBMS", args.dbms, args.root / "specs/dbms")
    dbms, choice = add_named_knobs(read_spec(path, Dbms, None)[1], path, args.knob or [])
    _check_names(dbms, args.knob or [], choice)
    catalogue = read_knob_catalogue(catalogue_file(path))
    with open_trials(dbms) as trials:
        file, record = open_record(args.root / "specs/startable", dbms, trials.version)
        names = list(dict.fromkeys(args.knob or numeric_knobs(dbms)))
        for position, name in enumerate(names, start=1):
            head = f"[{position}/{len(names)}] {name}"
            entry = record.knobs.get(name)
            if entry is not None and tuple(entry.asked) == asked_range(dbms, name, catalogue):
                print(f"{head}: recorded already", file=sys.stderr)
                continue
            result = find_startable(trials, name, catalogue)
            if result is not None:
                changed = {"knobs": {**record.knobs, name: result}, "tried": datetime.now(UTC).date().isoformat()}
                record = record.model_copy(update=changed)
                write_json(file, record.model_dump(mode="json", exclude_defaults=True))
            print(f"{head}: {_describe(result)}", file=sys.stderr)
    if file.is_file():  # none is written where every value starts
        print(file)
    return 0


def _run_study(args: argparse.Namespace) -> int:
    """Try the configurations of a study; what is found is in the record before the next trial."""
    study = find_study(args.study)
    specs = load_study(study, args.root, runnable={args.dbms})
    most = _TRIALS if args.trials is None else args.trials
    if most < 1:
        raise UserError(f"--trials is {most}; expected at least 1")
    if args.knob:
        raise UserError("--knob and --study at once; expected one of them: a study tells which values are tried")
    if args.dbms not in specs.dbms:
        raise UserError(
            f"{specs.study.name} has no DBMS {args.dbms!r}; expected {suggest(args.dbms, list(specs.dbms))}"
        )
    threads = max(workload.threads for workload in specs.workloads.values())
    with open_trials(specs.dbms[args.dbms], threads) as trials:
        file, record = open_record(study.absolute().parent.parent / "startable", specs.dbms[args.dbms], trials.version)

        def keep(setting: RefusedSetting) -> None:
            record.refused.append(setting)
            today = datetime.now(UTC).date().isoformat()
            changed = record.model_copy(update={"tried": today})
            write_json(file, changed.model_dump(mode="json", exclude_defaults=True))
            print(f"[trial {trials.starts}] {_describe_setting(setting)}", file=sys.stderr)

        tally = try_study(specs, args.dbms, trials.attempt, most, keep)
    print(
        f"{tally.trials} trials: {tally.tried} configurations were tried, {tally.failed} of them failed and were "
        f"bisected; {tally.running} of {tally.drawn} that the study now draws were tried and start",
        file=sys.stderr,
    )
    if not tally.is_complete:
        print("the trials are used up; call again with more of them (--trials)", file=sys.stderr)
    if file.is_file():  # none is written where every value starts
        print(file)
    return 0


def _describe_setting(setting: RefusedSetting) -> str:
    values = ", ".join(f"{knob} = {value}" for knob, value in setting.values.items())
    return f"{values}: {setting.words}"


def _check_names(dbms: Dbms, names: list[str], choice: list[str]) -> None:
    for name in names:
        if name not in dbms.knobs:
            expected = suggest(name, sorted(dbms.knobs), choice)
            raise UserError(f"{dbms.name} has no knob {name!r}; expected {expected}")
        if not is_numeric(dbms.knobs[name]):
            raise UserError(
                f"{name} is no number ({dbms.knobs[name].type}); expected a knob with a range, or with sizes"
            )


def open_record(folder: Path, dbms: Dbms, version: str) -> tuple[Path, StartableRecord]:
    """Return the file to write and what it holds of this very version; a record of another version is never changed.

    The first version of a DBMS gets DBMS-MAJOR.json, another one with the same major number DBMS-VERSION.json next to
    it. SpecErrors: a broken record.
    """
    of_major = folder / f"{dbms.name}-{major_version(dbms, version)}.json"
    of_version = folder / f"{dbms.name}-{version}.json"
    for file in (of_major, of_version):
        if not file.is_file():
            return file, StartableRecord(dbms=dbms.name, version=version, tried="", knobs={})
        record = read_record(file)
        if record.version == version:
            return file, record
        print(f"{file} is of version {record.version} and stays as it is", file=sys.stderr)
    raise UserError(f"{of_version} is of version {record.version}; expected {version} by its name: rename or remove it")


def find_startable(trials: Trials, name: str, catalogue: KnobCatalogue | None) -> StartableKnob | None:
    """Find what starts of a knob, the other ones at their defaults; None when nothing was found to start from."""
    knob = trials.dbms.knobs[name]
    low, high = asked_range(trials.dbms, name, catalogue)
    default = knob.default if isinstance(knob.default, int | float) else None
    log = knob.scale == "log" or (low > 0 and high / low >= _WIDE)
    try:
        limits = search_range(low, high, default, log=log, refuse=lambda value: trials.refuse(name, value))
    except NothingStartsError:
        return None
    read_back = {end: trials.read_differing(name, end) for end in (limits.low, limits.high)}
    return StartableKnob(
        asked=[low, high],
        startable=[limits.low, limits.high],
        below=_refusal(trials.dbms, name, limits.below),
        above=_refusal(trials.dbms, name, limits.above),
        read_back={str(end): value for end, value in read_back.items() if value is not None},
    )


def _refusal(dbms: Dbms, name: str, refused: Refused | None) -> Refusal | None:
    """Return the refusal, with the `requires` of the spec that the value breaks together with the defaults."""
    if refused is None:
        return None
    values = {**{knob_name: knob.default for knob_name, knob in dbms.knobs.items()}, name: refused.value}
    broken = [
        knob.requires
        for knob in dbms.knobs.values()
        if knob.requirement is not None
        and name in knob.requirement.names
        and not knob.requirement.holds({"threads": 1, "records": 1, **values})
    ]
    return Refusal(value=refused.value, words=refused.words, breaks=broken[0] if broken else None)


def _describe(knob: StartableKnob | None) -> str:
    if knob is None:
        return "nothing starts, neither an end of its range nor the default; not recorded"
    low, high = knob.startable
    text = f"starts in [{low}, {high}]"
    if knob.startable != knob.asked:
        text += f" of [{knob.asked[0]}, {knob.asked[1]}]"
    for refusal in (knob.below, knob.above):
        if refusal is not None:
            text += f"; {refusal.value}: {refusal.words}"
    for value, effective in knob.read_back.items():
        text += f"; {value} reads back {effective}"
    return text


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "startable",
        help="find the values with which a DBMS starts",
        description="Start a DBMS on an empty data directory with the smallest and the largest value of each numeric "
        "knob, all others at their defaults, and bisect where it refuses. What was found is recorded for this version "
        "in specs/startable/DBMS-MAJOR.json after every knob, or in DBMS-VERSION.json where that file is of another "
        "version; knobs that are recorded are not tried again. Plans keep to the records, and a study that names a "
        "value with which the server does not start is refused. With --study the configurations that a study draws are "
        "tried instead, and those that fail are bisected for the fewest values with which they fail.",
    )
    parser.add_argument("dbms", metavar="DBMS", help="name in specs/dbms, or a YAML file")
    parser.add_argument(
        "--knob", action="append", metavar="K", help="just this one (again for more); also one of the catalogue"
    )
    parser.add_argument(
        "--study",
        help="study YAML, or its name in specs/studies: try the configurations that it draws instead of single knobs, "
        "and bisect those that fail",
    )
    parser.add_argument("--trials", type=int, metavar="N", help=f"starts at most, with --study (default: {_TRIALS})")
    parser.add_argument("--root", type=Path, default=Path(), help="the checkout whose specs are used")
    parser.set_defaults(run=_run)
