"""Where clips, classes and attributes come from."""
