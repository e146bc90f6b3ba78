"""The kinds of panel that figures consist of: their numbers and how they are drawn, a module each."""
