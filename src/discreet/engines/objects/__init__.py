"""Objects of buckets and files of web servers, by their addresses."""
