"""Write reports and the leaderboard as folders of pages, with shared templates."""
