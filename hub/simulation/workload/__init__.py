"""Jobs of a trace and the site they run on."""
