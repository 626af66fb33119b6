"""Means, variances and covariances, of one number each or of rows."""
