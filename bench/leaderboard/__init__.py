"""The leaderboard: a folder of plain pages made from the same functions as a report."""
