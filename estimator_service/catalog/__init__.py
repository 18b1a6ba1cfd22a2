"""What the estimator knows: models and hardware, one TOML file each, every fact with its source."""
