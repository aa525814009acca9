"""A recurrence in plain English, for the person who has to check it.

A sentence says when the recurrence fires and nothing that it does not do: `describe` puts the rules, the
dates and the exceptions together, `rule_sentence` describes one rule, and `day_words`, `position_words` and
`time_words` its parts. What is described is what is evaluated: the day filter with the days that DTSTART
implies, not the text. A rule for which there are no words is quoted, never paraphrased.
"""
