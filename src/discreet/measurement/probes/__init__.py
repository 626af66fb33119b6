"""Facts that nobody declared, found out privately."""
