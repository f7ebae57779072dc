"""Workers, where newer programs look for them."""
