"""`knobscope models`: keeps what a study learned, and lets another one start from it."""

import argparse
import sys
from pathlib import Path

from knobscope.commands.models.saving import make_prior, write_prior
from knobscope.commands.models.starting import fit_from_prior
from knobscope.durable_files import write_sealed
from knobscope.errors import UserError
from knobscope.specs import SpecErrors, check_prior_version, find_case, load_study
from knobscope.specs.reading.arguments import (
    add_case_argument,
    add_study_arguments,
    add_study_name,
    find_study,
    require_name,
)
from knobscope.specs.reading.source import load_document
from knobscope.stages.prepare import find_version


def _save(args: argparse.Namespace) -> int:
    if args.as_name is not None:
        require_name("--as", args.as_name)
    specs = load_study(find_study(args.study), args.root, runnable=False)
    results = args.results or Path("results") / specs.study.name
    prior = make_prior(specs, results, args.as_name or specs.study.name)
    path = write_prior(prior, args.out)
    for ranking in prior.rankings:
        if not ranking.trustworthy:
            where = f"{ranking.dbms} on {ranking.device}, {ranking.workload}"
            print(f"the ranking of {where} cannot be trusted: {ranking.reason}", file=sys.stderr)
    print(f"{path}: {prior.describe()}")
    return 0


def _apply(args: argparse.Namespace) -> int:
    specs = load_study(args.study, args.root, runnable=False)
    case = find_case(specs, args.case)
    if specs.prior is None:
        raise UserError(f"{args.study} names no prior under `screening.prior`, so there is nothing to start from")
    dbms, workload = specs.dbms[case.dbms], specs.workloads[case.workload]
    version = find_version(dbms, workload)
    document = load_document(args.study)
    if problems := list(check_prior_version(document, specs.prior, dbms, version, workload.class_)):
        raise SpecErrors(problems)
    fit = fit_from_prior(specs, specs.prior, case)
    write_sealed(args.out, fit)
    chosen = [entry["knob"] for entry in fit["importance"] if entry["selected"]]
    print(f"{case}: {fit['reason']}; goes on with {', '.join(chosen)}", file=sys.stderr)
    return 0


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommands."""
    parser = subparsers.add_parser(
        "models",
        help="keep the knob ranking of a study, and start another study from it",
        description="Keep what a finished study learned, so that another study need not screen again.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    _add_save(actions)
    _add_apply(actions)


def _add_save(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = actions.add_parser(
        "save",
        help="write the last fits of a finished study as a prior, a YAML file",
        description="Write the last fits of a finished study, with DBMS version, device profile, workload class, date "
        "and R2 on held-out runs, as a small YAML file. Screening of other studies starts from it where it fits; with "
        "`screening: {prior: NAME}` one takes it instead of screening.",
    )
    add_study_name(parser)
    parser.add_argument("--results", type=Path, metavar="DIR", help="folder of the study (default: results/STUDY)")
    parser.add_argument("--as", dest="as_name", metavar="NAME", help="name of the prior (default: that of the study)")
    parser.add_argument("--out", type=Path, default=Path("models"), metavar="DIR", help="folder to write into")
    parser.set_defaults(run=_save)


def _add_apply(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = actions.add_parser(
        "apply",
        help="take the ranking of a prior instead of screening",
        description="Write the fit of a case from the prior that its study names under `screening.prior`. Refused when "
        "the major version of the DBMS on this machine is not the one that the prior was measured with.",
    )
    add_study_arguments(parser)
    add_case_argument(parser)
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    parser.set_defaults(run=_apply)
