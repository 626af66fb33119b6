"""The service: HTTP, a page and the PostgreSQL wire before one process that owns the book, and workers that read."""
