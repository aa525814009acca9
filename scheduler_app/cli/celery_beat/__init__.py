"""Celery beat's schedules, read where they are kept, as schedules of the API."""
