#include "bench/model.h"

#include <cmath>

#include "support/numbers.h"

namespace quatrain::bench {
namespace {

constexpr int64_t kBatchesOfACall = 4;  // lengths differ from batch to batch

Contest contest_of_models(const std::vector<ModelTwin>& twins, const ModelPass& pass,
                          const std::string& unit) {
  Contest contest;
  for (const auto& twin : twins) {
    const ModelCalls calls = twin.make(pass, kBatchesOfACall);
    const auto all = [next = calls.next, batches = calls.batches] {
      for (int64_t i = 0; i < batches; ++i) next();
    };
    contest.candidates.push_back({twin.name, all, calls.parameters, calls.batches});
    Contender contender{.ours = twin.name, .real = twins.front().name};
    contender.asked = {field("batch", pass.batch), field("twin", twin.name)};
    contender.asked.insert(contender.asked.end(), twin.said.begin(), twin.said.end());
    const double units = static_cast<double>(calls.units()) / static_cast<double>(calls.batches);
    contender.more = [name = twin.name, unit, units](const Found& found) {
      const double rate = units / found.at(name).time.median;
      Field rates = column(unit + "/s", grouped(std::llround(rate)));
      rates.key = unit + "_per_second", rates.value = rate;
      return std::vector{rates};
    };
    contest.contenders.push_back(std::move(contender));
  }
  return contest;
}

}  // namespace

Subject models(const std::vector<ModelTwin>& twins, const std::vector<ModelPass>& passes, int threads,
               const std::string& unit, double seconds) {
  Subject subject;
  subject.notes = "training: forward, backward, clipping, optimizer. time: of a batch.\n";
  subject.timing = {.seconds = seconds};
  for (const auto& pass : passes) {
    Case one{.threads = threads, .training = pass.training};
    for (const auto& twin : twins)
      one.memory.emplace_back(twin.name, [twin, pass] { return twin.make(pass, 1).next; });
    one.make = [twins, pass, unit] { return contest_of_models(twins, pass, unit); };
    subject.cases.push_back(std::move(one));
  }
  return subject;
}

}  // namespace quatrain::bench
