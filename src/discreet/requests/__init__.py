"""What a caller can ask of a curator: one frozen request for each verb, and the table of all verbs.

`request` says what a request is and has the kinds of its arguments, `question_requests`, `table_requests` and
`ledger_requests` have the requests themselves, `verbs` the signatures that curators share, and `verb_table` the table
`VERBS`, from which every face (Python, the command line, HTTP, the wire, the page) is derived.
"""

FACES = frozenset({"python", "cli", "http", "wire", "page"})
"""The names of the faces through which a caller can ask."""
