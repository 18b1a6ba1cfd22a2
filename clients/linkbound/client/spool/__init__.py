"""Keeps what one writer wrote in files of this machine, until the service holds it for good."""
