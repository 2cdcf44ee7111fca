#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

// The inputs that are kept, handed to each target as libFuzzer would.
namespace {

namespace fs = std::filesystem;

struct Target {
  const char* name;
  int (*run)(const uint8_t*, size_t);
};

}  // namespace

extern "C" {
int fuzz_algebra(const uint8_t*, size_t);
int fuzz_arpa(const uint8_t*, size_t);
int fuzz_audio(const uint8_t*, size_t);
int fuzz_images(const uint8_t*, size_t);
int fuzz_kaldi(const uint8_t*, size_t);
int fuzz_pairs(const uint8_t*, size_t);
int fuzz_pieces(const uint8_t*, size_t);
int fuzz_readers(const uint8_t*, size_t);
int fuzz_recipe(const uint8_t*, size_t);
int fuzz_safetensors(const uint8_t*, size_t);
int fuzz_speech(const uint8_t*, size_t);
int fuzz_text_pairs(const uint8_t*, size_t);
int fuzz_vectors(const uint8_t*, size_t);
int fuzz_vocabulary(const uint8_t*, size_t);
}

namespace {

class Replay : public testing::TestWithParam<Target> {};

TEST_P(Replay, FindsNothing) {
  const fs::path folder = fs::path(QUATRAIN_CORPUS) / GetParam().name;
  std::vector<fs::path> inputs(fs::directory_iterator(folder), {});
  std::sort(inputs.begin(), inputs.end());
  ASSERT_FALSE(inputs.empty()) << "no inputs in " << folder;
  for (const auto& input : inputs) {
    std::ifstream file(input, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(file), {});
    std::printf("%s\n", input.filename().c_str());  // the last one told of is the one that crashed
    std::fflush(stdout);
    EXPECT_NO_THROW(GetParam().run(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size())) << input;
  }
}

INSTANTIATE_TEST_SUITE_P(
    , Replay,
    testing::Values(Target{"algebra", fuzz_algebra}, Target{"arpa", fuzz_arpa}, Target{"audio", fuzz_audio},
                    Target{"images", fuzz_images}, Target{"kaldi", fuzz_kaldi}, Target{"pairs", fuzz_pairs},
                    Target{"pieces", fuzz_pieces}, Target{"readers", fuzz_readers},
                    Target{"recipe", fuzz_recipe}, Target{"safetensors", fuzz_safetensors},
                    Target{"speech", fuzz_speech}, Target{"text_pairs", fuzz_text_pairs},
                    Target{"vectors", fuzz_vectors}, Target{"vocabulary", fuzz_vocabulary}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
