"""The witness: it computes what was owed by an evaluator of its own, compares that with the history, and
keeps the ledger. It imports nothing of what expands occurrences.
"""
