"""What explains: scores of (class, attribute) pairs on a grid, their training objectives, and the question asked of them."""
