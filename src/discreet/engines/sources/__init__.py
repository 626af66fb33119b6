"""Where rows can be besides one file or one frame: many files that are one table, and what one query sees of them."""
