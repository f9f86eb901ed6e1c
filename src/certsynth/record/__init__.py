"""certificate.json as frozen dataclasses: one declaration gives the reader, the writer and the JSON Schema."""
