"""`scheduler import-crontab`: what is read of a crontab."""
