"""The policy pack: `rules/` judges resources, `support/` reads them. It shares no code with what made them."""
