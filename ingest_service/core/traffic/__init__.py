"""Traffic of counters: raw readings to curves of bytes over time, curves to rates over windows and to phases."""
