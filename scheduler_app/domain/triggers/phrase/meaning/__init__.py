"""From clauses to what they mean together."""
