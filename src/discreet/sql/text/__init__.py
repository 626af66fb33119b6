"""The text of a question: its tokens, the words that are refused, and what is proposed instead."""
