#pragma once

#include <algorithm>
#include <span>

#include "tasks/speech/model.h"

namespace quatrain::tasks {

/// What there is to tell of an answer that grows, and changes, while somebody speaks.
struct News {
  std::span<const HeardToken> tokens;
  bool again = false;  ///< all that was heard: what was told is no longer so
};

/// `same`: that two tokens read the same.
template <class Same>
News news_of(std::span<const HeardToken> told, std::span<const HeardToken> heard, const Same& same) {
  const bool grew = told.size() <= heard.size() && std::ranges::equal(told, heard.first(told.size()), same);
  return grew ? News{heard.subspan(told.size())} : News{heard, true};
}

}  // namespace quatrain::tasks
