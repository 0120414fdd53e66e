"""From a teacher to a student: on-policy rounds, and the arithmetic of the bot."""
