"""The gallery: jobs, notebooks and pipelines that users publish for others to run."""
