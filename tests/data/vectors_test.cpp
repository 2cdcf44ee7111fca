#include "quatrain/data/vectors.h"

#include <torch/types.h>

#include <cmath>
#include <map>

#include "support.h"

namespace quatrain::data {
namespace {

using testing::HasSubstr;

class VectorsTest : public DataTest {
 protected:
  std::string error(const std::filesystem::path& file) const {
    return error_of([&] { load_vectors(file, words_); });
  }
  Vocabulary words_{{"cat", "dog", "emu"}};
};

torch::Tensor row(const Vectors& vectors, int64_t id) {
  return vectors.values[id];
}

TEST_F(VectorsTest, ReadsText) {
  const auto vectors =
      load_vectors(write("v.txt", "cat 1 -2.5 3e1\nox 9 9 9\nemu 0 0.5 1\ncat 7 7 7\n"), words_);
  EXPECT_EQ(vectors.found, 2);
  ASSERT_EQ(vectors.values.sizes(), (std::vector<int64_t>{5, 3}));
  EXPECT_TRUE(row(vectors, 0).equal(torch::zeros(3)));
  EXPECT_TRUE(row(vectors, 2).equal(torch::tensor({1.0F, -2.5F, 30.0F})));
  EXPECT_TRUE(row(vectors, 4).equal(torch::tensor({0.0F, 0.5F, 1.0F})));
}

TEST_F(VectorsTest, ReadsTextWithAHeader) {
  EXPECT_EQ(load_vectors(write("v.txt", "2 3\ncat 1 2 3\nox 9 9 9\n"), words_).found, 1);
  EXPECT_THAT(error(write("v.txt", "3 3\ncat 1 2 3\nox 9 9 9\n")),
              HasSubstr("promises 3 vectors, but the file contains 2"));
}

TEST_F(VectorsTest, ReadsBfloat16WithItsList) {
  const auto values = torch::tensor({{1.0F, -2.0F}, {0.5F, 96.0F}}).to(torch::kBFloat16);
  const auto file = write("w.bf16", {static_cast<const char*>(values.data_ptr()), 8});
  write("w.vocab", "ox\ndog\n");
  const auto vectors = load_vectors(file, words_);
  EXPECT_EQ(vectors.found, 1);
  EXPECT_TRUE(row(vectors, 3).equal(torch::tensor({0.5F, 96.0F})));
  EXPECT_EQ(vectors.values.scalar_type(), torch::kFloat);
}

TEST_F(VectorsTest, DrawsTheMissingWithTheSpreadOfTheFound) {
  std::vector<std::string> names{"a"};
  std::string text = "a";
  for (int i = 0; i < 4000; ++i) text += i % 2 ? " 3" : " 5";
  names.push_back("missing");
  const Vocabulary words(names);
  const auto file = write("v.txt", text + "\n");
  const auto first = load_vectors(file, words, 1);
  EXPECT_NEAR(row(first, 3).mean().item<double>(), 4, 0.1);
  EXPECT_NEAR(row(first, 3).std().item<double>(), 1, 0.1);
  EXPECT_TRUE(first.values.equal(load_vectors(file, words, 1).values));
  EXPECT_FALSE(first.values.equal(load_vectors(file, words, 2).values));
}

TEST_F(VectorsTest, SaysWhatIsWrong) {
  const auto bad = write("w.bf16", "12345678");
  EXPECT_THAT(error(bad), HasSubstr((folder_ / "w.vocab").string() + ", but there is no such file"));
  write("w.vocab", "cat\ndog\nemu\n");
  EXPECT_THAT(error(bad), HasSubstr("for each word of " + (folder_ / "w.vocab").string() +
                                    ", got 4 numbers for 3 words"));
  EXPECT_THAT(error(write("v.txt", "cat 1 2\ndog 1\n")),
              HasSubstr("v.txt:2: a line must have a word and 2 numbers, got 1"));
  EXPECT_THAT(error(write("v.txt", "cat 1 x\n")), HasSubstr("v.txt:1: column 3 must be a number, got \"x\""));
  EXPECT_THAT(error(write("v.txt", "cat 1 nan\n")),
              HasSubstr("v.txt:1: the vector of \"cat\" must have finite numbers, but number 2 is nan"));
  EXPECT_THAT(error(write("v.txt", "ox 1 2\n")),
              HasSubstr("has a vector for none of the 5 words of the vocabulary"));
  EXPECT_THAT(error(write("v.txt", "")), HasSubstr("is empty"));
  EXPECT_THAT(error(folder_), HasSubstr("is a folder; name a file in it"));
  EXPECT_THAT(error(folder_ / "none.txt"), HasSubstr("there is no such file"));
}

// Two vocabularies can share their words' vectors.
TEST_F(VectorsTest, OfWordsThatAreNotFoundAreTheirOwn) {
  const auto path = write("v.txt", "a 1 2 0\nb 3 5 1\n");
  const Vocabulary words({"a", "b", "c", "d"}), others({"d", "b", "e", "a", "c"});
  const auto rows = [](const Vocabulary& vocabulary, const at::Tensor& values) {
    std::map<std::string, at::Tensor> all;
    for (int64_t id = 1; id < vocabulary.size(); ++id) all[vocabulary.word(id)] = values[id];
    return all;
  };
  for (const bool from_file : {true, false}) {
    const auto find = [&](const Vocabulary& vocabulary, uint64_t seed) {
      return rows(vocabulary, from_file ? load_vectors(path, vocabulary, seed).values
                                        : draw_vectors(vocabulary, 3, seed).values);
    };
    const auto here = find(words, 1), there = find(others, 1), drawn_again = find(words, 2);
    for (const char* word : {"<unk>", "a", "b", "c", "d"})
      EXPECT_TRUE(here.at(word).equal(there.at(word))) << word;
    for (const auto& [word, vector] : there)
      for (const auto& [other, second] : there)
        EXPECT_EQ(vector.equal(second), word == other) << word << " " << other;
    EXPECT_FALSE(here.at("c").equal(drawn_again.at("c")));
  }
  const at::Tensor many = draw_vectors(Vocabulary([] {
                                         std::vector<std::string> all;
                                         for (int i = 0; i < 2000; ++i)
                                           all.push_back("w" + std::to_string(i));
                                         return all;
                                       }()),
                                       65, 3)
                              .values.slice(0, 1) *
                          std::sqrt(65.0);
  EXPECT_NEAR(many.mean().item<double>(), 0, 0.01);
  EXPECT_NEAR(many.std().item<double>(), 1, 0.01);
  EXPECT_NEAR(many.pow(4).mean().item<double>(), 3, 0.1);  // a normal one's
}

}  // namespace
}  // namespace quatrain::data
