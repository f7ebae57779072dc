"""Options, ports and model configuration: the ground floor, without torch."""
