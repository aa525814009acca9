"""The release. The package, the API, the client and the manual read it here. deploy/ and docker-compose.yml
name it, too, and a test compares them with this."""

__version__ = "0.1.0"
#: Which policies in documents this release obeys. It is raised when there is one that the release before it
#: ignores. 0: releases that know none of kill switches, blackouts, `run_overlap` and `completion`.
POLICY_LEVEL = 1
#: Which indexes this release asks MongoDB for by their names. It is raised where some of them are replaced,
#: which are dropped when every process has the level. 0: releases that do not report it.
INDEX_LEVEL = 3
