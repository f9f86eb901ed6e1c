"""Placeholder."""


def render(view):
    return "<html></html>"
