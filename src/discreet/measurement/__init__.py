"""From a plan and a budget to what is read, which noise it meets, what that costs and how wrong the answer is.

Aggregates name what they need; equal needs of a question are served by one release; releases know their reading, their
noise and their event. Nothing here knows an engine or a ledger.
"""
