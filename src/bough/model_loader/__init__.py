"""Getting weights into models."""
