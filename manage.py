#!/usr/bin/env python3
"""Manage: every command of Docent. The first one on a bare machine makes the environment too."""

import sys

if sys.version_info < (3, 11):
    sys.exit(
        "Docent needs Python 3.11 or newer, and this is {}.{}. Install a newer one and call it by "
        "its name, like: python3.12 manage.py up".format(*sys.version_info)
    )

from assistant import bootstrap
from assistant.errors import SetupError

if __name__ == "__main__":
    try:
        groups = bootstrap.groups_for(sys.argv)
        if not bootstrap.is_current(groups):
            from assistant import installation

            installation.install(groups)
            bootstrap.restart()
        if not bootstrap.is_inside():
            bootstrap.restart()

        bootstrap.keep_bytecode()
        from assistant import commandline

        commandline.run(sys.argv)
    except SetupError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)
