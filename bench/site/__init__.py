"""Reports and leaderboard as folders of pages, by one set of templates."""
