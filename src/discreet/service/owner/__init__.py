"""The owner of the book: the one process that charges, stores and fails, gives work to workers, and opens no table."""
