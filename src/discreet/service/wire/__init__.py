"""The PostgreSQL wire: clients of a database ask questions, and see tables and columns in its catalog."""
