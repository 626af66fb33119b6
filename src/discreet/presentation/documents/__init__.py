"""What a curator gives, as plain JSON and back: for programs, other processes and other machines.

`result_documents` knows the document of every verb: `answer_documents` has answers, `plan_documents` and `told_plans`
what is told before anything is spent, `profile_documents` profiles, `model_documents` learners, `synthesis_documents`
synthetic tables, `ledger_documents` balances and entries, `plain_results` all results that are plain. `error_documents`
has errors, and `json_values` what all of them are made of.
"""
