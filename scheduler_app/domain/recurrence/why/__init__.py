"""Why a recurrence fires at an instant, or does not: the first part of each rule that leaves it out.

The evaluator itself is the judge. Only when it says that an instant does not occur are the parts tried one
by one, in the order in which RFC 5545, 3.3.10 applies them: DTSTART, INTERVAL, the BY parts, BYSETPOS, UNTIL
and COUNT, and then the exceptions of the set.
"""
