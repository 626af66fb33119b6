"""The tables of a curator: what is declared about them, whose rows they have, and what questions may spend on them."""
