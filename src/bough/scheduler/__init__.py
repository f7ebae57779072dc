"""The scheduler: queue, plans, results. The only part that decides what runs next."""
