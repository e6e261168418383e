"""What every room shares: shapes, sequences, states, errors, configuration, names, taps, chance."""
