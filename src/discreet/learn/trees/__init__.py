"""Classifiers on public cells of features: trees, forests, and boosting of one feature at a time."""
