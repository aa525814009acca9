"""Rules bound to a start, and the search for their instants in bounded steps."""
