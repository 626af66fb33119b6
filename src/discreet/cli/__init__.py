"""The command line: text in, tables out, no logic of its own.

`app` lists the commands and loads each when it is called. `verbs` makes commands of requests; `steward` has those about
the ledger, the other modules those that are no verbs. `output` prints values, tables, pages and errors.
"""

from discreet.cli.app import app, main, run_alone

__all__ = ["app", "main", "run_alone"]
