"""The functions and operators of SQL that a question may use, each read into an expression of the plan."""
