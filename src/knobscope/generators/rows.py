"""Programs that make the rows of a benchmark before they are loaded."""

import subprocess

from knobscope.generators.failure import GeneratorError
from knobscope.processes import OutputLimitError, capture, supervise

_LONGEST_S = 3600


def make_rows(name: str, command: list[str]) -> None:
    """Run a program that writes rows; it ends when this process does. GeneratorError, with its words: it fails."""
    process = supervise(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        exit_code, _, errors = capture(process, _LONGEST_S)
    except subprocess.TimeoutExpired as error:
        raise GeneratorError("timeout", f"{name} did not end within {_LONGEST_S} s") from error
    except OutputLimitError as error:
        raise GeneratorError("failed", f"{name}: {error}") from error
    if exit_code != 0:
        raise GeneratorError("failed", f"{name} ended with exit code {exit_code}", errors, exit_code)
