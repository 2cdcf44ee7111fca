#include "ops/engine/team.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace quatrain {
namespace {

using ops::engine::Team;

class Threads {
 public:
  explicit Threads(int count) : before_(at::get_num_threads()) { at::set_num_threads(count); }
  ~Threads() { at::set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

TEST(Team, HasAsManyThreadsAsATen) {
  const Threads three(3);
  EXPECT_EQ(Team::most(), 3);
  at::parallel_for(0, 2, 1, [](int64_t, int64_t) { EXPECT_EQ(Team::most(), 1); });
}

// Each phase reads what the others wrote in the one before: running sums of all parts.
TEST(Team, WaitsForAllBetweenPhases) {
  constexpr int64_t kValues = 10, kPhases = 3000;
  for (const int threads : {1, 2, 3}) {
    const Threads those(threads);
    std::vector<int64_t> values[2] = {std::vector<int64_t>(kValues, 1), std::vector<int64_t>(kValues)};
    Team::run(threads, [&](const Team::Member& member) {
      for (int64_t phase = 0; phase < kPhases; ++phase) {
        const auto [begin, end] = member.share(kValues);
        for (int64_t i = begin; i < end; ++i)
          values[(phase + 1) % 2][static_cast<size_t>(i)] =
              values[phase % 2][static_cast<size_t>((i + 3) % kValues)] + 1;
        member.wait();
      }
    });
    for (const int64_t value : values[kPhases % 2]) EXPECT_EQ(value, kPhases + 1) << threads << " threads";
  }
}

TEST(Team, EndsWhereOneFailsWithWhatThatOneThrew) {
  const Threads two(2);
  for (int time = 0; time < 200; ++time) try {
      Team::run(2, [](const Team::Member& member) {
        if (member.parts().end == 2) throw std::runtime_error("failed");
        member.wait();
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "failed");
    }
}

}  // namespace
}  // namespace quatrain
