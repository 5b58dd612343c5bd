"""Whom the commands of specs run as: never root."""

import os
import pwd

from knobscope.errors import UserError

#: Made by `make setup` when it is called as root.
SERVICE_USER = "knobscope"


def find_service_user() -> str | None:
    """Return the user for servers and load when we are root, None when we are somebody ordinary already."""
    if os.geteuid() != 0:
        return None
    try:
        account = pwd.getpwnam(SERVICE_USER)
    except KeyError as error:
        raise UserError(
            f"knobscope was started as root, and there is no user {SERVICE_USER!r} to run servers and clients as; "
            f"`make setup` makes one (useradd --system {SERVICE_USER}), or start knobscope as an ordinary user"
        ) from error
    if account.pw_uid == 0:
        raise UserError(f"user {SERVICE_USER!r} is root; give it a user id of its own")
    return SERVICE_USER
