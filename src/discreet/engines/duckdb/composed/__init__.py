"""What one query reads as one table: many files, a snapshot, a table of a database."""
