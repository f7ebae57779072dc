"""Output that has to match something: JSON schemas, patterns, grammars, tagged parts, lists of choices."""
