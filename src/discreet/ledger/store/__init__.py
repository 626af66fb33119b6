"""The store of the ledger: what it needs of a database (`ledger_store`), a SQLite file and a PostgreSQL server."""
