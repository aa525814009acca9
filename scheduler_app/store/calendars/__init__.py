"""Calendars in MongoDB: their documents and their verbs."""
