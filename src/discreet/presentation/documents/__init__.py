"""Results of a curator as plain JSON and back: for programs, other processes and other machines.

`result_documents` has the form of every result, from which writing, reading and the description of the API follow.
`answer_documents` declares the forms of answers, `plan_documents` of what is known before anything is spent and of
profiles, `model_documents` of learners, `synthesis_documents` of synthetic tables, `ledger_documents` of balances and
entries. `error_documents` has errors.
"""
