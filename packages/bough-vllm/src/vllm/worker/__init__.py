"""Workers, where older programs look for them."""
