"""Questions as text and in Python: both gates, and the plan that they let through."""
