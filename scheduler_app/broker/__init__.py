"""Messages by Celery: its application and task, the publisher, and a seam for each broker."""
