"""Two tables of the same people: one row of attributes for each, and several events of each."""
