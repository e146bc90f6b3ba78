"""What the report's pages and the leaderboard's have in common: type, colours, mark and grades."""
