"""Numbers that ship with the suite: the papers' and ours."""
