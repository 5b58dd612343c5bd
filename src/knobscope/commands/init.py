"""`knobscope init`: lays out a folder for studies of one's own, outside a checkout."""

import argparse
import os
import shlex
import sys
from pathlib import Path

from knobscope.durable_files import whole_file
from knobscope.errors import UserError
from knobscope.shipped import SHIPPED
from knobscope.text.formats import plural

_SNAKEFILE = """\
# Runs the studies of this folder with the installed knobscope:
#
#   snakemake --config study=specs/studies/NAME.yaml
from knobscope.shipped import SHIPPED


include: str(SHIPPED / "Snakefile")


localrules:
    study,


# A Snakefile that only includes another one has no target, and would do nothing.
rule study:
    default_target: True
    input:
        rules.all.input,
"""
#: Folders that are copied: a later version of knobscope changes no spec of a study that began.
_FOLDERS = ("specs", "profiles", "models")
#: What studies make.
_IGNORED = "results/\n.snakemake/\n.knobscope/\n.knobscope-devices/\n"


def _run(args: argparse.Namespace) -> int:
    folder: Path = args.folder
    if folder.resolve() == SHIPPED:
        raise UserError(f"{folder} is the folder of knobscope itself; expected another one")
    if os.path.lexists(folder) and not folder.is_dir():
        raise UserError(f"{folder} is no folder; expected a new one, or one to add to")
    shipped = [file for name in _FOLDERS for file in (SHIPPED / name).rglob("*") if file.is_file()]
    files = {str(file.relative_to(SHIPPED)): file.read_bytes() for file in shipped}
    files |= {"Snakefile": _SNAKEFILE.encode(), ".gitignore": _IGNORED.encode()}
    new = {name: content for name, content in files.items() if not os.path.lexists(folder / name)}
    for name, content in new.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with whole_file(folder / name) as part:  # half a file would count as one that is to be kept
            part.write_bytes(content)
    kept = len(files) - len(new)
    wrote = f"wrote {plural(len(new), 'file')}{f', kept {kept} that exist' if kept else ''}"
    print(f"{folder}: {wrote}. Go on with", file=sys.stderr)
    print(f"cd {shlex.quote(str(folder))}\nknobscope doctor\nsnakemake -n --config study=specs/studies/quickstart.yaml")
    return 0


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "init",
        help="lay out a folder for studies of your own",
        description="Write a Snakefile that runs the installed knobscope, profiles, priors and all specs that come "
        "with knobscope into a folder: specs of your own go next to them. Files that exist are kept, so a second call "
        "adds what is missing.",
    )
    parser.add_argument("folder", type=Path, metavar="DIRECTORY", help="folder to write into; made if need be")
    parser.set_defaults(run=_run)
