"""Arguments that the commands of all stages share."""

import argparse
from pathlib import Path

__all__ = ["add_case_argument", "add_study_arguments"]


def add_study_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--study`` and ``--root``."""
    parser.add_argument("--study", type=Path, required=True, help="study YAML")
    parser.add_argument("--root", type=Path, default=Path(), help="what relative device paths start from")


def add_case_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--case``."""
    parser.add_argument("--case", required=True, metavar="DBMS/DEVICE/WORKLOAD", help="which case of the study")
