"""Audits: lower bounds on the epsilon that a mechanism or a curator really has, beside the one it claims."""
