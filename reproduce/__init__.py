"""The tables and figures of four papers on calibration, made again with the public interface of calibrant."""
