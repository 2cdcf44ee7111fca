#include "cli/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace quatrain::cli {

Interval paired_bootstrap(const std::vector<double>& differences, int64_t resamples, uint64_t seed) {
  if (differences.empty()) return {};
  const auto count = static_cast<double>(differences.size());
  // The standard fixes what this engine gives, but not what its distributions do.
  std::mt19937_64 engine(seed);
  std::vector<double> means(static_cast<size_t>(resamples));
  for (double& mean : means) {
    double sum = 0;
    for (size_t i = 0; i < differences.size(); ++i) sum += differences[engine() % differences.size()];
    mean = sum / count;
  }
  std::sort(means.begin(), means.end());
  const auto percentile = [&](double share) {
    return means[static_cast<size_t>(std::lround(share * static_cast<double>(means.size() - 1)))];
  };
  return {std::accumulate(differences.begin(), differences.end(), 0.0) / count, percentile(0.025),
          percentile(0.975)};
}

Spread spread(const std::vector<double>& values) {
  if (values.empty()) return {};
  const auto count = static_cast<double>(values.size());
  Spread result;
  result.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  if (values.size() > 1) {
    double squares = 0;
    for (const double value : values) squares += (value - result.mean) * (value - result.mean);
    result.deviation = std::sqrt(squares / (count - 1));
  }
  return result;
}

}  // namespace quatrain::cli
