"""Step 3: from a noisy measurement to weights on points, and from weights to rows. No private row is in sight here."""
