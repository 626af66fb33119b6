"""Facts that were not declared, found out privately."""
