"""Tables of lakehouses, Delta and Iceberg, at a snapshot."""
