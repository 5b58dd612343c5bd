"""`knobscope crate`: writes a finished study as a Workflow Run RO-Crate, and draws the figures of one again."""

import argparse
import sys
import tempfile
from pathlib import Path

from knobscope import __version__
from knobscope.commands.crate.contents import copy_contents
from knobscope.commands.crate.layout import DATABASE
from knobscope.commands.crate.metadata import load_rocrate, write_metadata
from knobscope.commands.crate.opening import differing_files, open_crate, redraw
from knobscope.durable_files import remove, whole_directory, whole_file
from knobscope.errors import UserError
from knobscope.specs import StudySpecs
from knobscope.specs.reading.arguments import find_study
from knobscope.study_data.study import StudyData
from knobscope.text.formats import join_words, plural

_NO_LICENSE = "The authors have not stated a licence for these data."


def _run(args: argparse.Namespace) -> int:
    if (args.study is None) == (args.open is None):
        raise UserError("expected either STUDY, whose crate is written, or --open CRATE")
    options = {"--results": args.results, "--author": args.author, "--license": args.license != _NO_LICENSE}
    if args.open and (given := [option for option, value in options.items() if value]):
        raise UserError(f"found {join_words(given)} with --open; expected them with STUDY, whose crate is written")
    return _open(args) if args.open else _write(args)


def _write(args: argparse.Namespace) -> int:
    load_rocrate()
    study = find_study(args.study)
    results = args.results or Path("results") / study.stem
    out = _choose_out(args.out, f"{study.stem}.crate.zip")
    out.absolute().parent.mkdir(parents=True, exist_ok=True)
    if out.suffix == ".zip":
        with tempfile.TemporaryDirectory(prefix=".crate-", dir=out.absolute().parent) as folder:
            _fill(args, Path(folder), study, results)
            with whole_file(out) as part:
                _pack(Path(folder), part)
    else:
        with whole_directory(out) as folder_of_crate:
            _fill(args, folder_of_crate, study, results)
    print(f"wrote {out}; `knobscope crate --open {out}` draws its figures again", file=sys.stderr)
    return 0


def _fill(args: argparse.Namespace, folder: Path, study: Path, results: Path) -> None:
    specs = copy_contents(folder, study, args.root, results, __version__)
    times = _measured_times(folder / DATABASE, specs)
    write_metadata(folder, study, specs, times, args.author, args.license)


def _measured_times(database: Path, specs: StudySpecs) -> dict[str, str]:
    """Return when measuring began and ended, as an action of a crate has it; nothing of an imported study."""
    with StudyData.open(database, specs) as data:
        first = data.value("SELECT min(started_at) FROM runs")
        last = data.value("SELECT max(started_at + coalesce(window_s, 0) * INTERVAL 1 SECOND) FROM runs")
    times = {"startTime": first, "endTime": last} if first else {}
    return {name: f"{time:%Y-%m-%dT%H:%M:%S}+00:00" for name, time in times.items()}


def _pack(folder: Path, target: Path) -> None:
    import zipfile

    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder).as_posix())


def _open(args: argparse.Namespace) -> int:
    name = args.open.resolve().name.removesuffix(".zip").removesuffix(".crate")
    crate = args.open.resolve()
    beside = crate.parent if crate.is_dir() and Path.cwd().is_relative_to(crate) else Path()
    out = _choose_out(args.out, str(beside / f"{name}-opened"))
    if args.open.is_dir() and out.resolve().is_relative_to(args.open.resolve()):
        raise UserError(f"{out} is inside the crate, which would change it; write elsewhere with --out")
    study = open_crate(args.open, out)
    try:
        redraw(out, study)
    except UserError:
        remove(out)
        raise
    count, differing = differing_files(out)
    if differing:
        print(f"{plural(len(differing), 'file')} of {count} differ: {', '.join(differing[:5])}")
        print(f"knobscope here is {__version__}; {out / 'README.md'} names the crate's version", file=sys.stderr)
        return 1
    print(f"report and figures drawn again, {plural(count, 'file')}: all equal those of the crate, byte by byte")
    print(f"knobscope: they are in {out / 'redrawn'}", file=sys.stderr)
    return 0


def _choose_out(named: Path | None, default: str) -> Path:
    out = named or Path(default)
    if out.exists() or out.is_symlink():
        raise UserError(f"{out} exists; remove it, or write elsewhere with --out")
    return out


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "crate",
        help="write a finished study as an RO-Crate, or draw the figures of one again",
        description="Write a finished study as a Workflow Run RO-Crate: its specs, the workflow, its database, report "
        "and figures, Snakemake's report of how it was run, and how to cite knobscope. With --open, unpack a crate, "
        "draw its report and figures again, and compare them byte by byte; exit code 1: some differ. Nothing of a "
        "crate is run, and nothing outside the folder that it is opened into is written or read for it.",
    )
    parser.add_argument("study", metavar="STUDY", nargs="?", help="study YAML, or its name in specs/studies")
    parser.add_argument("--open", type=Path, metavar="CRATE", help="the ZIP file or folder of a crate")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="PATH",
        help="what to write: a ZIP file, or a folder if the name does not end in .zip (default: STUDY.crate.zip); with "
        "--open, the folder to unpack into (default: NAME-opened)",
    )
    parser.add_argument("--results", type=Path, metavar="DIR", help="results of the study (default: results/STUDY)")
    parser.add_argument("--root", type=Path, default=Path(), help="what relative device paths start from")
    parser.add_argument("--author", action="append", default=[], metavar="NAME", help="who measured (repeatable)")
    parser.add_argument("--license", default=_NO_LICENSE, metavar="URL", help="licence of the data (default: none)")
    parser.set_defaults(run=_run)
