"""The anchor: the newest head of a ledger and what was spent by then, in a file apart from ledger and backups."""
