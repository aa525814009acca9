"""The release."""

__version__ = "0.1.0"
#: Which policies in documents this release obeys. It is raised when there is one that the release before it
#: ignores. 0: releases that know none of kill switches, blackouts, `run_overlap` and `completion`.
POLICY_LEVEL = 1
