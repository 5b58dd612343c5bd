"""What ``snakemake --config`` says."""

import os
from collections.abc import Mapping
from typing import Any

from knobscope.errors import UserError

_DEFAULT_STUDY = "specs/studies/quickstart.yaml"
_KEYS = ("study", "retry_failed")


def find_study_file(config: Mapping[str, Any]) -> str:
    """Return the file of the study. UserError: unknown keys, with which the default study would be run instead."""
    if unknown := sorted(config.keys() - _KEYS):
        raise UserError(f"--config: found {', '.join(unknown)}; expected {' or '.join(_KEYS)}")
    # In one spelling: with another one all jobs would have other parameters, and be carried out again.
    return os.path.relpath(str(config.get("study", _DEFAULT_STUDY)))
