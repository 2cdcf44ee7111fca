#include "bench/peak_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstring>
#include <memory>
#include <vector>

namespace quatrain::bench {
namespace {

using testing::HasSubstr;

TEST(PeakMemory, is_that_of_the_third_call) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer keeps what is freed";
#endif
  static constexpr size_t kMegabyte = 1 << 20;
  const auto filled = [](size_t size) {
    auto memory = std::make_shared<std::vector<char>>(size);
    std::memset(memory->data(), 1, size);
    return memory;
  };
  // 20 MB are kept, 60 MB more needed for a while; what making them took is gone.
  const int64_t peak = peak_memory([&] {
    filled(200 * kMegabyte);
    return [kept = filled(20 * kMegabyte), &filled] { filled(60 * kMegabyte); };
  });
  EXPECT_NEAR(static_cast<double>(peak), 80.0 * kMegabyte, 2.0 * kMegabyte);
}

TEST(PeakMemory, says_what_went_wrong) {
  EXPECT_THROW(
      {
        try {
          peak_memory([]() -> std::function<void()> { throw std::runtime_error("no such thing"); });
        } catch (const std::runtime_error& error) {
          EXPECT_THAT(error.what(), HasSubstr("no such thing"));
          throw;
        }
      },
      std::runtime_error);
  EXPECT_THROW(peak_memory([] { return [] { ::_exit(3); }; }), std::runtime_error);
}

}  // namespace
}  // namespace quatrain::bench
