"""What can be promised about emitted rows."""
