"""From a board's runs to figures, a module a question."""
