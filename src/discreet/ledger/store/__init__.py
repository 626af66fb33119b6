"""Where the ledger is kept: what it needs of a database (`base`), and the one SQLite file that offers it."""
