"""Events in MongoDB: their documents, and a class of verbs for each purpose."""
