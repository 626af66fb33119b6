"""PostgreSQL's catalog of declared tables: in memory, in a process of its own, from public facts only."""
