"""From a question to a frozen plan: schema, expressions, functions, readings."""
