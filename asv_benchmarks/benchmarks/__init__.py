"""The speed of kernels and of short fits, for airspeed velocity."""
