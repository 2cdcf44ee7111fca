#include "cli/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <stdexcept>

namespace quatrain::cli {
namespace {

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double variance_of(const std::vector<double>& values) {
  const double deviation = spread(values).deviation;
  return deviation * deviation;
}

// Means over the examples (one a seed), over the seeds (one an example), and the variance of what neither
// explains.
struct Parts {
  std::vector<double> of_seeds, of_examples;
  double rest = 0;
};

Parts parts_of(const Answers& answers) {
  const size_t seeds = answers.size(), examples = answers.front().size();
  Parts parts;
  parts.of_examples.resize(examples);
  for (const auto& one : answers) {
    if (one.size() != examples) throw std::invalid_argument("runs of one model scored other examples");
    parts.of_seeds.push_back(mean_of(one));
    for (size_t i = 0; i < examples; ++i) parts.of_examples[i] += one[i] / static_cast<double>(seeds);
  }
  const double mean = mean_of(parts.of_seeds);
  for (size_t s = 0; s < seeds; ++s)
    for (size_t i = 0; i < examples; ++i) {
      const double rest = answers[s][i] - parts.of_seeds[s] - parts.of_examples[i] + mean;
      parts.rest += rest * rest;
    }
  parts.rest /= static_cast<double>((seeds - 1) * (examples - 1));
  return parts;
}

}  // namespace

Spread spread(const std::vector<double>& values) {
  if (values.empty()) return {};
  Spread result;
  result.mean = mean_of(values);
  if (values.size() > 1) {
    double squares = 0;
    for (const double value : values) squares += (value - result.mean) * (value - result.mean);
    result.deviation = std::sqrt(squares / static_cast<double>(values.size() - 1));
  }
  return result;
}

std::vector<double> contributions(const std::vector<std::vector<int64_t>>& counts,
                                  const std::function<double(const std::vector<int64_t>&)>& figure) {
  if (counts.empty()) return {};
  std::vector<int64_t> sums(counts.front().size());
  for (const auto& row : counts)
    for (size_t c = 0; c < sums.size(); ++c) sums[c] += row.at(c);
  const double whole = figure(sums);
  if (counts.size() == 1) return {whole};
  std::vector<double> without;
  for (const auto& row : counts) {
    std::vector<int64_t> rest = sums;
    for (size_t c = 0; c < rest.size(); ++c) rest[c] -= row[c];
    without.push_back(figure(rest));
  }
  const double mean = mean_of(without), others = static_cast<double>(counts.size() - 1);
  std::vector<double> all;
  for (const double one : without) all.push_back(whole + others * (mean - one));
  return all;
}

Interval difference(const Answers& model, const Answers& other, int64_t comparisons) {
  if (model.empty() || model.size() != other.size() || model.front().size() != other.front().size())
    throw std::invalid_argument("two models are compared with the same number of seeds and examples");
  const auto seeds = static_cast<double>(model.size()), examples = static_cast<double>(model.front().size());
  const Parts a = parts_of(model), b = parts_of(other);
  const double mean = mean_of(a.of_seeds) - mean_of(b.of_seeds);
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (seeds < 2 || examples < 2) return {mean, kNone, kNone};

  std::vector<double> differences = a.of_examples;
  for (size_t i = 0; i < differences.size(); ++i) differences[i] -= b.of_examples[i];
  const double of_a = variance_of(a.of_seeds) / seeds, of_b = variance_of(b.of_seeds) / seeds;
  const double of_examples = variance_of(differences) / examples;
  const double once = (a.rest + b.rest) / (seeds * examples);
  // Seeds that agree more than chance lets them would make the variance less than the examples' own.
  const double variance = std::max(of_a + of_b + of_examples - once, of_examples);
  if (variance == 0) return {mean, mean, mean};
  // Never fewer than those of a single part, which the subtraction could make of them.
  const double degrees =
      std::max(variance * variance /
                   ((of_a * of_a + of_b * of_b) / (seeds - 1) + of_examples * of_examples / (examples - 1)),
               std::min(seeds, examples) - 1);
  const double half = student_t(0.025 / static_cast<double>(comparisons), degrees) * std::sqrt(variance);
  return {mean, mean - half, mean + half};
}

Verdict verdict(const Interval& difference, double margin, bool higher_is_better) {
  if (difference.low > 0) return higher_is_better ? Verdict::ahead : Verdict::behind;
  if (difference.high < 0) return higher_is_better ? Verdict::behind : Verdict::ahead;
  if (difference.low >= -margin && difference.high <= margin) return Verdict::level;
  return Verdict::open;
}

double student_t(double chance, double degrees) {
  if (!(chance >= 1e-9 && chance <= 0.5) || !(degrees >= 1))
    throw std::invalid_argument("student_t takes a chance of 1e-9 to .5 and one degree of freedom or more");
  // With t = sqrt(v) tan(u) the density becomes c cos(u)^(v - 1), whose integral is smooth and short.
  const double v = degrees;
  const double scale = std::exp(std::lgamma((v + 1) / 2) - std::lgamma(v / 2)) / std::sqrt(std::numbers::pi);
  // Simpson's rule from the angle up to where the density vanishes. There, where v is below 2, it has no
  // derivative: in s with u = end - width s^4 it has three.
  const auto above = [&](double angle) {
    const double end = std::min(std::numbers::pi / 2, angle + 12 / std::sqrt(v)), width = end - angle,
                 beyond = std::numbers::pi / 2 - end;
    constexpr int kSteps = 1000;
    double sum = 0;
    for (int i = 0; i <= kSteps; ++i) {
      const double s = static_cast<double>(i) / kSteps, from_end = width * s * s * s * s;
      const double density = std::pow(std::max(std::sin(beyond + from_end), 0.0), v - 1);
      sum += (i == 0 || i == kSteps ? 1 : i % 2 ? 4 : 2) * density * 4 * width * s * s * s;
    }
    return scale * sum / (3 * kSteps);
  };
  double low = 0, high = std::numbers::pi / 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (above(middle) > chance ? low : high) = middle;
  }
  return std::sqrt(v) * std::tan((low + high) / 2);
}

}  // namespace quatrain::cli
