"""From a plan and a budget to what is read, which noise it meets, what that costs and how wrong the answer is."""
