"""Messages and channels between the processes of a server."""
