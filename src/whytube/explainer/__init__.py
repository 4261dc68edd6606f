"""What explains: scores of (class, attribute) pairs on a grid, what they are trained for, and the answers they give."""
