"""The program that scores the weights of a leaderboard in the grading sandbox."""
