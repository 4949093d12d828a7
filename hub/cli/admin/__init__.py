"""Commands of administrators: up, down, doctor, backup, groups, users, pool, images, calendar."""
