#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <utility>

namespace quatrain {

/// Says how far long work is: every five seconds at most, and ever more rarely.
class Telling {
 public:
  /// `tell` may be empty: nothing is said then.
  explicit Telling(std::function<void(const std::string&)> tell) : tell_(std::move(tell)) {}

  /// Says text(), if it is time to.
  template <class Text>
  void operator()(const Text& text) {
    using namespace std::chrono_literals;
    if (!tell_) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::max<std::chrono::steady_clock::duration>(5s, (last_ - begun_) / 10)) return;
    last_ = now;
    tell_(text());
  }

 private:
  std::function<void(const std::string&)> tell_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now(), last_ = begun_;
};

}  // namespace quatrain
