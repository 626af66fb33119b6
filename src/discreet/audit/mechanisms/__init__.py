"""Audits of mechanisms: certified lower bounds from runs, exact laws on two neighbours, and tests of declared laws."""
