"""English phrases such as "every other Tuesday at 9:34", read without a guess.

`words` and `tokens` know the words, `parser` turns them into clauses by the rules of `grammar_…`, `once` and
`repeated` decide what the clauses mean together, `rules` writes the recurrence set. Every word must belong to
a clause and every clause must have its place in the result; what can be read in several ways is refused with
its readings.
"""
