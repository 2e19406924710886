"""Local calibration: sums of a kernel over pairs of rows (`kernel_sums`), and over coarse features (`spectra`)."""
