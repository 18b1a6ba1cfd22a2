"""What the estimator is asked: a function for each method of its two clients, by topic."""
