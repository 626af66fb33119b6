"""Public facts that follow from a plan and from declarations: bounds, values, owners, and what one unit can change."""
