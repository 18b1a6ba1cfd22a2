"""The command `linkbound`. Nothing heavy is imported before a sub-command needs it."""
