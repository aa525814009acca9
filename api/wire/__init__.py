"""JSON in and out: the schemas of bodies, queries and answers, and what fills the answers."""
