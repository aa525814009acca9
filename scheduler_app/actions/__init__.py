"""The kinds of actions, a folder each. `kind` and `executor` are the seam, `registry` lists the kinds."""
