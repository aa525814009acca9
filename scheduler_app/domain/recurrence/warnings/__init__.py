"""What is accepted in a recurrence and may still not be what the person wanted."""
