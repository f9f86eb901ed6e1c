"""Many, mixed columns: releases of public tables measured in every way that peers are measured."""
