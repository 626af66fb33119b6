"""The anchor: the newest head of a book and what was spent by then, in a file apart from the book and its backups."""
