"""Placeholder view."""


def view(document, schema, table):
    return dict(document=document)
