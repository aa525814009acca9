"""Recurrence text: content lines read, and written in the canonical form that is stored."""
