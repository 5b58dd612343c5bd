"""Puts the files that are not Python into the wheel, where `knobscope.shipped` looks for them."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

_FILES = (
    "CITATION.cff",
    "LICENSE",
    "Snakefile",
    "rules",
    "specs",
    "probes",
    "profiles",
    "models",
    "setup/device-helper.py",
    "setup/install-helper.sh",
)


class BuildWithFiles(build_py):
    """Builds the package with its files; an editable installation finds them in the checkout."""

    def run(self) -> None:
        """Copy the modules, then the files."""
        package = Path(self.build_lib, "knobscope")
        if not self.editable_mode:
            shutil.rmtree(package, ignore_errors=True)  # of an earlier build: it may hold what is gone by now
        super().run()
        if self.editable_mode:
            return
        target = package / "files"
        for name in _FILES:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            if Path(name).is_dir():
                shutil.copytree(name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(name, target / name)


setup(cmdclass={"build_py": BuildWithFiles})
