"""The fields of each resource, a table of plain data for each: what the API takes and shows, what the store
keeps, the client's types, the forms, the options of commands and the manual follow from its rows.
"""
