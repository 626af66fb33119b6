"""The declarations of a discreet.toml, and how a curator takes them up."""
