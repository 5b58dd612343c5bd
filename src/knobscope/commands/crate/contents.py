"""What is put into a crate: the specs that the study reads, the workflow, what was measured, and all figures."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from knobscope.commands.crate.layout import DATABASE, FIGURES, REPORT, STUDIES, TRACES
from knobscope.errors import UserError
from knobscope.shipped import SHIPPED
from knobscope.specs import StudySpecs, load_study
from knobscope.specs.reading.source import observe_reading
from knobscope.stages.report.page import render_report

_README = """\
# Study {name}, measured with knobscope {version}

`measured/report.html` is its report, `measured/study.duckdb` holds all tables, `measured/figures` every figure with its
data (CSV) and query (SQL). With knobscope {version} installed (`pip install .` in a checkout of that version), all
figures can be drawn again, and compared with these:

    knobscope crate --open THIS-FOLDER-OR-ZIP

To repeat the measurements on another machine, in this folder, and compare them with these:

    snakemake --cores 2 --config study={study}
    knobscope compare measured/study.duckdb results/{name}/study.duckdb

That runs the commands of the specs: read these first where you do not trust their author. `knobscope crate --open` runs
nothing of a crate.
"""


def read_with_files(study: Path, root: Path) -> tuple[StudySpecs, list[Path]]:
    """Return a study, and the files of its project that it consists of, relative to the project's folder.

    UserError: one of them is outside of it.
    """
    read: dict[Path, None] = {}
    with observe_reading(lambda path: read.setdefault(_normalise(path))):
        specs = load_study(study, root, runnable=False)
    project = study.absolute().parent.parent.parent
    own = [path for path in read if not path.is_relative_to(SHIPPED / "rules")]
    if outside := [path for path in own if not path.is_relative_to(project)]:
        raise UserError(f"{study} reads {outside[0]}; expected all its specs below {project}, which a crate can hold")
    return specs, [path.relative_to(project) for path in own]


def _normalise(path: Path) -> Path:
    """Return an absolute path without `..`; links stay what they are, such as a folder of specs that is one."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - that of Path follows links


def copy_contents(folder: Path, study: Path, root: Path, results: Path, version: str) -> StudySpecs:
    """Fill a folder with everything but the metadata."""
    specs, files = read_with_files(study, root)
    database = results / "study.duckdb"
    if not database.is_file():
        raise UserError(f"no {database}; expected the results of a finished study")
    project = study.absolute().parent.parent.parent
    for file in files:
        _copy(project / file, folder / file)
    for name in ("Snakefile", "rules", "profiles/default", "CITATION.cff", "LICENSE"):
        if (SHIPPED / name).exists():
            _copy(SHIPPED / name, folder / name)
    _copy(database, folder / DATABASE)
    for name in ("devices", "traces"):
        if (results / name).is_dir():
            _copy(results / name, folder / "measured" / name)
    about = {"name": specs.study.name, "version": version, "study": f"{STUDIES}/{study.name}"}
    (folder / "README.md").write_text(_README.format(**about), encoding="utf-8")
    draw(folder, specs, folder / REPORT, folder / FIGURES)
    if Path(".snakemake").is_dir():
        _add_workflow_report(folder / "snakemake-report.html", study)
    else:
        print("knobscope: the crate has no report of Snakemake, which did not run here", file=sys.stderr)
    return specs


def draw(folder: Path, specs: StudySpecs, report: Path, figures: Path) -> None:
    """Draw the report and all figures of the study in a crate."""
    render_report(folder / DATABASE, specs, report, figures=figures, traces=folder / TRACES)


def _copy(source: Path, target: Path) -> None:
    """Copy a file or a directory. UserError: what it holds, or what it is, leads elsewhere: links, pipes."""
    if source.is_symlink() or not (source.is_dir() or source.is_file()):
        raise UserError(f"{source} is a link or another special file; expected regular files only")
    if source.is_dir():
        target.mkdir(parents=True)
        for entry in sorted(source.iterdir()):
            if not entry.name.startswith(".") and entry.name != "__pycache__":
                _copy(entry, target / entry.name)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target, follow_symlinks=False)


def _add_workflow_report(target: Path, study: Path) -> None:
    """Let Snakemake write how the study was run, from its records in this folder."""
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(SHIPPED / "Snakefile"), "--cores", "1"]
    command += ["--directory", ".", "--report", str(target.absolute()), "--config", f"study={study}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not target.is_file():
        target.unlink(missing_ok=True)
        reason = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "it said nothing")
        print(f"knobscope: the crate has no report of Snakemake: {reason.strip()}", file=sys.stderr)
