"""`knobscope drivers`: fetches the JDBC drivers that DBMS specs name, through Maven."""

import argparse
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from knobscope.errors import UserError
from knobscope.specs import Dbms, driver_directory, find_driver, read_spec

_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.7.1:copy-dependencies"
_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>knobscope</groupId>
  <artifactId>driver</artifactId>
  <version>1</version>
  <dependencies>
    <dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>
  </dependencies>
</project>
"""
_LIMIT_S = 600


def fetch_driver(driver: str) -> Path:
    """Fetch a driver, given as group:artifact:version, and all that it needs; return the directory of the jars.

    One that is there is left alone; an interrupted call leaves nothing that looks like one. UserError: Maven cannot
    get it, or its checksum is wrong.
    """
    directory = driver_directory(driver)
    if find_driver(driver):
        return directory
    maven = shutil.which("mvn")
    if maven is None:
        raise UserError("no mvn program on PATH, which fetches drivers; apt-get install maven")
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=directory.parent) as private:
        pom = Path(private) / "pom.xml"
        pom.write_text(_POM.format(*driver.split(":")), encoding="utf-8")
        command = [maven, "-q", "-B", "--strict-checksums", "-f", str(pom), _PLUGIN, "-DincludeScope=runtime"]
        command.append(f"-DoutputDirectory={private}/jars")
        try:
            result = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise UserError(f"Maven did not get the driver {driver} in {_LIMIT_S} s") from error
        if result.returncode != 0:
            message = next((line for line in result.stdout.splitlines() if "ERROR" in line), result.stderr.strip())
            raise UserError(f"Maven cannot get the driver {driver}: {message.removeprefix('[ERROR] ')}")
        jars = Path(private) / "jars"
        jars.chmod(0o755)  # servers' and clients' users read them
        jars.rename(directory)
    return directory


def _drivers_of(paths: list[Path]) -> Iterator[str]:
    for path in paths:
        connection = read_spec(path, Dbms, None)[1].connection
        if connection is not None and connection.driver is not None:
            yield connection.driver


def _run(args: argparse.Namespace) -> int:
    folder = args.root / "specs/dbms"
    if not args.specs and not folder.is_dir():
        raise UserError(f"{folder} does not exist; call it in a checkout, or name spec files")
    for driver in dict.fromkeys(_drivers_of(args.specs or sorted(folder.glob("*.yaml")))):
        print(fetch_driver(driver))
    return 0


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "drivers",
        help="fetch the JDBC drivers that DBMS specs name",
        description="Fetch every `connection.driver` of the DBMS specs with Maven, whose checksums must be right, into "
        "the folder drivers of .fleet (or KNOBSCOPE_FLEET), and print its directory. One that is there is left alone; "
        "`make setup` calls this. Exit code 2 when a driver is not available.",
    )
    parser.add_argument("specs", type=Path, nargs="*", metavar="SPEC", help="DBMS specs; all of specs/dbms without")
    parser.add_argument("--root", type=Path, default=Path(), help="the checkout whose specs are read")
    parser.set_defaults(run=_run)
