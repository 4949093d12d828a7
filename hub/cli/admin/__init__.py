"""Up, down, doctor, backup, groups, users, pool, images, calendar, audit."""
