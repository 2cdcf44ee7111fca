#include "data/ibm_model1.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace quatrain::data {
namespace {

constexpr int64_t kBlockBytes = 128 << 20;
constexpr int64_t kPairsBetweenCalls = 1 << 14;

// t(target | source) of the targets that each source token keeps.
class Table {
 public:
  Table(const EncodedLinePairs& pairs, int64_t sources, int64_t targets, const Model1Options& options)
      : pairs_(pairs), sources_(sources), targets_(targets), options_(options), begins_{0} {}

  // From equal probabilities of all targets: counts what occurs together, exactly, for as many source tokens
  // at a time as fit into a block, and keeps what occurs most.
  void first_iteration() {
    const auto row = static_cast<int64_t>(sizeof(double)) * targets_;
    const int64_t rows = std::clamp<int64_t>(kBlockBytes / row, 1, sources_);
    std::vector<double> counts;
    for (int64_t first = 0; first < sources_; first += rows) {
      const int64_t end = std::min(first + rows, sources_);
      counts.assign(static_cast<size_t>((end - first) * targets_), 0);
      for_each_pair([&](auto source, auto target) {
        const double share = 1 / static_cast<double>(source.size());
        for (const int32_t s : source) {
          if (s < first || s >= end) continue;
          double* const own = counts.data() + (s - first) * targets_;
          for (const int32_t t : target) own[t] += share;
        }
      });
      for (int64_t s = first; s < end; ++s) keep_most(counts.data() + (s - first) * targets_);
    }
    counts_.resize(tokens_.size());
  }

  void iteration() {
    std::vector<std::pair<size_t, double>> found;  // where each of the source's tokens has a target, and t
    for_each_pair([&](auto source, auto target) {
      for (const int32_t t : target) {
        found.clear();
        double total = 0;
        for (const int32_t s : source)
          if (const size_t at = find(s, t); at != tokens_.size()) {
            found.emplace_back(at, probabilities_[at]);
            total += found.back().second;
          }
        if (total > 0)
          for (const auto& [at, probability] : found) counts_[at] += probability / total;
      }
    });
    for (int64_t s = 0; s < sources_; ++s) {
      const size_t first = begins_[static_cast<size_t>(s)], end = begins_[static_cast<size_t>(s) + 1];
      double sum = 0;
      for (size_t at = first; at < end; ++at) sum += counts_[at];
      for (size_t at = first; at < end; ++at)
        probabilities_[at] = static_cast<float>(sum > 0 ? std::exchange(counts_[at], 0) / sum : 0);
    }
  }

  std::vector<int64_t> best(int64_t source) const {
    std::vector<size_t> places(begins_[static_cast<size_t>(source) + 1] -
                               begins_[static_cast<size_t>(source)]);
    std::iota(places.begin(), places.end(), begins_[static_cast<size_t>(source)]);
    std::stable_sort(places.begin(), places.end(),
                     [&](size_t a, size_t b) { return probabilities_[a] > probabilities_[b]; });
    std::vector<int64_t> tokens;
    for (const size_t at : places)
      if (probabilities_[at] > 0 && static_cast<int64_t>(tokens.size()) < options_.best)
        tokens.push_back(tokens_[at]);
    return tokens;
  }

 private:
  template <class Work>
  void for_each_pair(const Work& work) const {
    for (int64_t i = 0; i < pairs_.size(); ++i) {
      if (options_.after_pairs && i % kPairsBetweenCalls == 0) options_.after_pairs();
      work(pairs_.source[i], pairs_.target[i]);
    }
  }

  void keep_most(const double* counts) {
    std::vector<int32_t> kept;
    for (int64_t t = 0; t < targets_; ++t)
      if (counts[t] > 0) kept.push_back(static_cast<int32_t>(t));
    const auto most = static_cast<size_t>(std::max(options_.candidates, options_.best));
    if (kept.size() > most) {
      std::nth_element(
          kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(most), kept.end(),
          [&](int32_t a, int32_t b) { return counts[a] != counts[b] ? counts[a] > counts[b] : a < b; });
      kept.resize(most);
      std::sort(kept.begin(), kept.end());
    }
    double sum = 0;
    for (const int32_t t : kept) sum += counts[t];
    for (const int32_t t : kept) probabilities_.push_back(static_cast<float>(counts[t] / sum));
    tokens_.insert(tokens_.end(), kept.begin(), kept.end());
    begins_.push_back(tokens_.size());
  }

  size_t find(int32_t source, int32_t target) const {
    const auto begin = tokens_.begin() + static_cast<std::ptrdiff_t>(begins_[static_cast<size_t>(source)]);
    const auto end = tokens_.begin() + static_cast<std::ptrdiff_t>(begins_[static_cast<size_t>(source) + 1]);
    const auto found = std::lower_bound(begin, end, target);
    return found != end && *found == target ? static_cast<size_t>(found - tokens_.begin()) : tokens_.size();
  }

  const EncodedLinePairs& pairs_;
  int64_t sources_, targets_;
  const Model1Options& options_;
  std::vector<size_t> begins_;        // of each source token in the others, and the end
  std::vector<int32_t> tokens_;       // targets, ascending
  std::vector<float> probabilities_;  // t
  std::vector<double> counts_;        // expected; a million small ones are beyond float
};

}  // namespace

std::vector<std::vector<int64_t>> likely_targets(const EncodedLinePairs& pairs, int64_t sources,
                                                 int64_t targets, const Model1Options& options) {
  for (const auto& [name, value] : {std::pair("best", options.best),
                                    {"iterations", options.iterations},
                                    {"candidates", options.candidates}})
    TORCH_CHECK(value >= 1, "likely_targets: ", name, " must be at least 1, got ", value);
  Table table(pairs, sources, targets, options);
  for (int64_t iteration = 1; iteration <= options.iterations; ++iteration) {
    if (options.tell) options.tell(iteration);
    iteration == 1 ? table.first_iteration() : table.iteration();
  }
  std::vector<std::vector<int64_t>> all;
  for (int64_t source = 0; source < sources; ++source) all.push_back(table.best(source));
  return all;
}

}  // namespace quatrain::data
