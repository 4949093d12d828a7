"""Who somebody is and what they may: OAuth, tokens, form tokens, headers."""
