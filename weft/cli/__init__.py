"""The program `weft`: parse, call, print. One file a group of verbs; what is heavy loads inside a verb."""
