"""Files of other tools as values of Linkbound. Pure: text in, domain types out."""
