"""Folders of files as tables: a row for each file, whose numbers are read when a learner is given them."""
