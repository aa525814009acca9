"""What the documents of all collections have in common: types of fields, writes of many at once."""
