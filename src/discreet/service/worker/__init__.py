"""A worker: a process that plans, reads and adds noise for one request at a time, and reaches the book by messages."""
