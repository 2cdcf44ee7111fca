#include "quatrain/data/bad_examples.h"

#include <algorithm>
#include <numeric>

namespace quatrain::data {

int64_t BadExamples::count() const {
  return std::accumulate(reasons.begin(), reasons.end(), int64_t{0},
                         [](int64_t sum, const Reason& reason) { return sum + reason.count; });
}

void BadExamples::add(std::string_view set, std::string_view reason, const std::string& place) {
  const auto known = std::find_if(reasons.begin(), reasons.end(), [&](const Reason& other) {
    return other.set == set && other.reason == reason;
  });
  if (known != reasons.end()) {
    ++known->count;
  } else {
    reasons.push_back({std::string(set), std::string(reason), place, 1});
  }
}

void BadExamples::forget(std::string_view set) {
  std::erase_if(reasons, [&](const Reason& reason) { return reason.set == set; });
}

}  // namespace quatrain::data
