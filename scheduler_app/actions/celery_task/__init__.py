"""The action kind `celery_task`: sends tasks to other people's Celery applications."""
