"""Commands that are made of requests: options from their arguments, printed results from their documents.

`request_options` has one table from kinds of arguments to options, `verb_commands` makes a command of a request, and
the other modules hold the commands that do more than perform one request and print its result.
"""
