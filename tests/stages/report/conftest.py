import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import duckdb
import pytest
from pages import Page, render, render_text
from simulated_specs import make_specs
from simulated_study import build_study, change_study

from knobscope.specs import StudySpecs
from knobscope.tables import TABLES


@pytest.fixture(scope="session")
def specs() -> StudySpecs:
    return make_specs()


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory, specs: StudySpecs) -> Path:
    """The database of a whole study, shared by all tests: change copies only."""
    return build_study(tmp_path_factory.mktemp("study"), specs)


@pytest.fixture(scope="session")
def page(study: Path, specs: StudySpecs, tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The page of that study."""
    return render(study, specs, tmp_path_factory.mktemp("page"))


@pytest.fixture
def changed_study(study: Path, tmp_path: Path) -> Callable[..., Path]:
    """Return a function that copies the study and executes SQL on the copy."""

    def change(*statements: str, parameters: Sequence[object] = ()) -> Path:
        copy = tmp_path / "changed.duckdb"
        shutil.copy(study, copy)
        return change_study(copy, *statements, parameters=parameters)

    return change


@pytest.fixture
def render_changed(changed_study: Callable[..., Path], specs: StudySpecs, tmp_path: Path) -> Callable[..., Page]:
    """Return a function that executes SQL on a copy of the study and renders it without its pictures.

    `cases` are those with sections of their own. `of` replaces the study's specs.
    """

    def render_copy(
        *statements: str, cases: Sequence[str] | None = None, of: StudySpecs = specs, parameters: Sequence[object] = ()
    ) -> Page:
        return render_text(changed_study(*statements, parameters=parameters), of, tmp_path, cases=cases)

    return render_copy


@pytest.fixture
def render_head(render_changed: Callable[..., Page]) -> Callable[..., Page]:
    """Return the same function, which renders no case if none is named, for what the page says of all of them."""
    return partial(render_changed, cases=())


@pytest.fixture
def empty_study(tmp_path: Path) -> Path:
    """A database that has all tables, and no row."""
    database = tmp_path / "empty.duckdb"
    with duckdb.connect(str(database)) as connection:
        for table, columns in TABLES.items():
            definition = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
            connection.execute(f'CREATE TABLE "{table}" ({definition})')
    return database
