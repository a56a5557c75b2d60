// What an RMSNorm multiplies a row with, besides its weights: Zhang and Sennrich 2019, equation 4. squares: the sum of the row's.
float norm_scale(float squares, uint width, float eps) {
    precise float mean = squares / float(width);
    precise float scale = 1.0 / sqrt(mean + eps);
    return scale;
}
