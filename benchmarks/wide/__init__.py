"""The race on tables of many, mixed columns: Adult, fire and loans."""
