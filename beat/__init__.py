"""beat: the Celery scheduler that expands, dispatches, recovers and prunes."""
