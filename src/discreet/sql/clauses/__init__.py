"""The clauses of a SELECT, each read into its part of the plan."""
