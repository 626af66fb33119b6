"""A worker: a process that plans, reads and adds noise for one request at a time; messages lead to the ledger."""
