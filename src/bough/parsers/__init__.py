"""What a model wrote, as reasoning, calls of functions and plain content, while it is being written."""
