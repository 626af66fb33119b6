"""The command line: text in, tables out, no logic of its own.

`curating` makes a curator for questions, `answers`, `explaining` and `accounts` turn what comes back into tables,
`failures` turns errors into help and exit codes, `app` names the commands.
"""

from discreet.cli.app import app, main

__all__ = ["app", "main"]
