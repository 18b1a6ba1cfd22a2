"""The types that cores, servicers, facades and the command share. Frozen values; no transport, no storage, no clock."""
