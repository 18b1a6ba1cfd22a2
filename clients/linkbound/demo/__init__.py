"""The demo: both services as real servers, fed with the records of the two source studies."""
