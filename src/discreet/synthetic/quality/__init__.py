"""How good a synthetic table is, as far as releases show: nothing here looks at private rows."""
