#pragma once

#include <cstdint>
#include <vector>

namespace quatrain::cli {

/// A mean with the interval that holds 95% of the resampled means.
struct Interval {
  double mean = 0;
  double low = 0;
  double high = 0;
};

/// The paired bootstrap: `differences` holds, for each test example, how much better one model did than the
/// other (averaged over seeds). Examples are drawn with replacement; the interval is that of the 2.5th
/// and 97.5th percentiles. The same seed gives the same interval everywhere. No examples: an interval of
/// zeros.
Interval paired_bootstrap(const std::vector<double>& differences, int64_t resamples = 10000,
                          uint64_t seed = 0);

/// Mean and standard deviation (of a sample; 0 for one value).
struct Spread {
  double mean = 0;
  double deviation = 0;
};
Spread spread(const std::vector<double>& values);

}  // namespace quatrain::cli
