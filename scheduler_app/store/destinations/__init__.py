"""Destinations in MongoDB: their documents and verbs."""
