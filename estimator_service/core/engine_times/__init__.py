"""What passes of an engine take: transfers from rates and bursts, arithmetic fitted to measured times."""
