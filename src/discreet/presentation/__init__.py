"""Presentation turns what a curator and a ledger hold into documents, reports and proposals, once for every face."""
