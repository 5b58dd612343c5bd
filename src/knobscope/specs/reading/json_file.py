"""Long lists that programs write are JSON, which is read much faster than YAML."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from knobscope.specs.reading.base import SpecModel
from knobscope.specs.reading.source import SpecErrors, SpecProblem, read_text, show_path

Model = TypeVar("Model", bound=SpecModel)


def read_json_file(
    path: Path, model: type[Model], expected: str, restore: Callable[[dict[str, Any]], dict[str, Any]] | None = None
) -> Model:
    """Return what a file holds; `restore` is called with every object in it. SpecErrors: all that is wrong in it."""
    try:
        return model.model_validate(json.loads(read_text(path, expected), object_hook=restore))
    except ValidationError as error:
        problems = [
            SpecProblem(show_path(path), 1, ".".join(map(str, detail["loc"])), str(detail["msg"]), expected)
            for detail in error.errors()
        ]
        raise SpecErrors(problems) from error
    except RecursionError as error:
        raise SpecErrors([SpecProblem(show_path(path), 1, "", "JSON that is nested too deep", expected)]) from error
    except ValueError as error:
        line = getattr(error, "lineno", 1)
        raise SpecErrors([SpecProblem(show_path(path), line, "", f"no JSON ({error})", expected)]) from error
