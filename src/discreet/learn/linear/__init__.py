"""Models made of sums: linear classifiers and regressions, scaling, principal components, naive Bayes."""
