"""The command line: text in, tables out, no logic of its own.

`app` names the commands and loads each when it is called; `declarations`, `questions`, `accounts`, `attacks`, `audits`
and `demo` hold them; `output` prints values and errors, `findings` what attacks have found.
"""

from discreet.cli.app import app, main

__all__ = ["app", "main"]
