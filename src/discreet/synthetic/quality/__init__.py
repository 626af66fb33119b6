"""How good a synthetic table is, as far as what was released tells: nothing here looks at private rows."""
