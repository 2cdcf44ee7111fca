#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "quatrain/api.h"

namespace quatrain::data {

/// Examples that were left out, by set and reason: pairs, utterances, pictures. Reading a set again counts it
/// anew.
struct QUATRAIN_API BadExamples {
  struct Reason {
    std::string set;     ///< "train"; empty where it was not known yet
    std::string reason;  ///< "the source is empty"
    std::string first;   ///< where the first of them is: "train.de:17"
    int64_t count = 0;
  };
  std::vector<Reason> reasons;
  int64_t count() const;
  void add(std::string_view set, std::string_view reason, const std::string& place);
  /// Before a set is read again.
  void forget(std::string_view set);
};

}  // namespace quatrain::data
