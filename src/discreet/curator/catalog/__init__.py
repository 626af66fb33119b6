"""What a curator holds: tables, owners, accounts and the terms of questions."""
