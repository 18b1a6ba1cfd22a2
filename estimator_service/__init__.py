"""The estimator: pure functions and a catalogue that predict what the network costs."""
