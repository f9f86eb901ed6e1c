"""Step 3: turn noisy measurements into weights on points, and weights into rows. No private row is read here."""
