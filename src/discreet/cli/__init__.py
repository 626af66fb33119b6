"""The command line: text in, tables out, no logic of its own.

`config` reads discreet.toml, `curating` hands its declarations to the curator and the book, `answers`, `explaining` and
`accounts` turn what comes back into tables, `failures` turns errors into help and exit codes, `app` names the commands.
"""

from discreet.cli.app import app, main

__all__ = ["app", "main"]
