"""Another machine that the load comes from, so that the load generator takes no processor time from the DBMS."""

import string
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from knobscope.specs.models.dbms import Dbms
from knobscope.specs.models.generator import BUILT_IN
from knobscope.specs.models.workload import Workload
from knobscope.specs.reading.base import SpecModel
from knobscope.specs.reading.source import Document, SpecProblem

#: What ssh can take for nothing but a path: it fills in what stands behind % and $, and cuts at blanks.
_SshPath = Annotated[str, Field(pattern=r"^(~/|/)[^%$\"'\\\s]*$")]
#: What means the same on another machine; everything else names a file or a directory of this one.
_FAR_PLACEHOLDERS = {"port", "password", "knob", "value", "unit", "property"}


class ClientHost(SpecModel):
    """A machine that is reached by ssh and runs YCSB's client instead of this one.

    Its key has to be known already (ssh never asks), the login has to work without a password, and python3 (3.10 or
    newer) and java (17 or newer) have to be on its PATH. The client reaches the DBMS through a tunnel.
    """

    host: str = Field(
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9._:-]{0,251}[A-Za-z0-9])?$", description="Its name, or its address."
    )
    user: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z_][A-Za-z0-9_.-]{0,63}$",
        description="Whom to log in as; absent: the user's name here.",
    )
    port: int = Field(default=22, ge=1, le=65535, description="Where its ssh server listens.")
    identity: _SshPath | None = Field(
        default=None, description="File of the private key to log in with; absent: ssh's usual ones, and its agent."
    )
    known_hosts: _SshPath | None = Field(
        default=None, description="File with the host's key; absent: ssh's usual ones."
    )
    directory: str = Field(
        default=".cache/knobscope",
        pattern=r"^[A-Za-z0-9_./+-]+$",
        description="Directory over there, from the home directory on, for the client's jars (copied once) and, while "
        "a run lasts, its files. Made when it is not there; no one else may write to it.",
    )


def check_client_host(
    document: Document, client: ClientHost | None, dbms: Dbms, workload: Workload
) -> Iterator[SpecProblem]:
    """Yield why the load of a workload on a DBMS cannot come from another machine."""
    if client is None:
        return
    location = ("client", "host")
    if workload.generator not in BUILT_IN:
        found = f"{client.host} for {workload.name}, whose generator is {workload.generator}"
        expected = f"a workload of {', '.join(BUILT_IN)}: only YCSB's client can run on another machine"
        yield document.problem(location, found, expected)
    elif dbms.lifecycle is None:
        found = f"{client.host} for {dbms.name}, which lives in its client"
        yield document.problem(location, found, "a DBMS with a server")
    elif dbms.connection is not None and (near := _near_placeholders(dbms)):
        found = f"{client.host} for {dbms.name}, whose clients need {{{near[0]}}} of the machine that it runs on"
        yield document.problem(location, found, "a DBMS whose clients need {port} alone")


def _near_placeholders(dbms: Dbms) -> list[str]:
    """Return what the client is told that makes sense on the DBMS's own machine only."""
    texts = list(dbms.connection.properties.values()) if dbms.connection else []
    writings = [dbms.writing_of(name) for name in dbms.knobs]
    texts += [writing.value for writing in writings if writing is not None and writing.client is not None]
    named = {name for text in texts for _, name, _, _ in string.Formatter().parse(text) if name is not None}
    return sorted(named - _FAR_PLACEHOLDERS)
