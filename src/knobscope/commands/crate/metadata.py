"""The metadata of a crate: RO-Crate 1.1, as the profile Workflow Run RO-Crate 0.5 wants it."""

import hashlib
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from knobscope import __version__
from knobscope.commands.crate.layout import DATABASE, METADATA, STUDIES
from knobscope.errors import UserError
from knobscope.specs import StudySpecs

_PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": ("Workflow RO-Crate", "1.0"),
}
_TERMS = "https://w3id.org/ro/terms/workflow-run/context"
_FORMATS = {
    ".csv": "text/csv", ".html": "text/html", ".json": "application/json", ".md": "text/markdown",
    ".parquet": "application/vnd.apache.parquet", ".sql": "application/sql", ".svg": "image/svg+xml",
    ".yaml": "application/yaml", ".duckdb": "application/octet-stream",
}  # fmt: skip


def load_rocrate() -> Any:
    """Return the module rocrate. UserError when it is not installed."""
    try:
        import rocrate.rocrate
    except ImportError as error:
        raise UserError(
            "rocrate is not installed; writing a crate needs it: `make setup` in the checkout, or pip install rocrate"
        ) from error
    return rocrate.rocrate


def write_metadata(
    folder: Path, study: Path, specs: StudySpecs, times: dict[str, str], authors: Sequence[str], license_text: str
) -> None:
    """Describe all files of a folder, which becomes a crate; `times` are those of the action."""
    crate = load_rocrate().ROCrate(version="1.1")
    crate.metadata.extra_contexts.append(_TERMS)
    crate.name = f"Study {specs.study.name}, measured with knobscope"
    crate.description = specs.study.description
    crate.license = license_text
    people = [
        crate.add(_entity(crate, f"#author-{number}", "Person", name=name)) for number, name in enumerate(authors)
    ]
    if people:
        crate.creator = people if len(people) > 1 else people[0]
    crate.root_dataset["conformsTo"] = [
        crate.add(_entity(crate, url, "CreativeWork", name=name, version=number))
        for url, (name, number) in _PROFILES.items()
    ]
    workflow = crate.add_workflow(
        str(folder / "Snakefile"), "Snakefile", main=True, lang="snakemake", lang_version=version("snakemake"),
        properties={"name": "The stages of a study", "version": __version__, **_facts(folder / "Snakefile")},
    )  # fmt: skip
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / "Snakefile")
    files = {
        name: crate.add_file(str(path), name, properties={"name": name, **_facts(path)})
        for path in paths
        for name in [path.relative_to(folder).as_posix()]
        if name != METADATA
    }
    software = _entity(crate, "#knobscope", "SoftwareApplication", name="knobscope", softwareVersion=__version__)
    run = crate.add_action(
        workflow,
        "#run",
        object=files[f"{STUDIES}/{study.name}"],
        result=[files[DATABASE], *(entity for name, entity in files.items() if name.endswith(".html"))],
        properties={
            "name": f"The runs of {specs.study.name}",
            "description": specs.study.description,
            **times,
        },
    )
    workflow["softwareRequirements"] = crate.add(software)
    files["README.md"]["about"] = crate.root_dataset
    crate.root_dataset["mentions"] = run
    if people:
        run["agent"] = people[0]
    crate.metadata.write(str(folder))


def _entity(crate: Any, identifier: str, kind: str, **properties: str) -> Any:
    from rocrate.model.contextentity import ContextEntity

    return ContextEntity(crate, identifier, properties={"@type": kind, **properties})


def _facts(path: Path) -> dict[str, str]:
    """Return what lets a reader check a file."""
    form = _FORMATS.get(path.suffix, "text/plain")
    return {"contentSize": str(path.stat().st_size), "sha256": sha256_of(path), "encodingFormat": form}


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
