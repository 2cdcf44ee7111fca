#include "quatrain/scores/error_rate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <sstream>

#include "../temporary_folder.h"
#include "quatrain/scores/transcripts.h"

namespace quatrain::scores {
namespace {

using Tokens = std::vector<std::string>;
using testing::ElementsAre;
constexpr auto kFewest = AlignmentRule::fewest_edits, kSclite = AlignmentRule::sclite;

Tokens words(const std::string& text) {
  std::istringstream stream(text);
  Tokens all;
  for (std::string word; stream >> word;) all.push_back(word);
  return all;
}

/// Insertions, deletions, substitutions, hits.
std::array<int64_t, 4> edits(const std::string& reference, const std::string& hypothesis,
                             AlignmentRule rule = kFewest) {
  const auto counts = count_errors(align_tokens(words(reference), words(hypothesis), rule));
  return {counts.insertions, counts.deletions, counts.substitutions, counts.hits};
}
using Edits = std::array<int64_t, 4>;

Tokens random_tokens(std::mt19937& random, int most, int kinds = 3) {
  Tokens all(static_cast<size_t>(random() % static_cast<unsigned>(most + 1)));
  for (auto& token : all)
    token = std::string(1, static_cast<char>('a' + random() % static_cast<unsigned>(kinds)));
  return all;
}

struct Costs {
  int64_t substitution, deletion, insertion;
};
/// The cheapest way from `r` and `h` on, by trying all.
int64_t cheapest(const Tokens& reference, const Tokens& hypothesis, const Costs& costs, size_t r = 0,
                 size_t h = 0) {
  if (r == reference.size()) return costs.insertion * static_cast<int64_t>(hypothesis.size() - h);
  if (h == hypothesis.size()) return costs.deletion * static_cast<int64_t>(reference.size() - r);
  return std::min({cheapest(reference, hypothesis, costs, r + 1, h) + costs.deletion,
                   cheapest(reference, hypothesis, costs, r, h + 1) + costs.insertion,
                   cheapest(reference, hypothesis, costs, r + 1, h + 1) +
                       (reference[r] == hypothesis[h] ? 0 : costs.substitution)});
}

TEST(ErrorRate, alignments_by_hand) {
  EXPECT_EQ(edits("a b c", "a b c"), (Edits{0, 0, 0, 3}));
  EXPECT_EQ(edits("a b c", "a x c"), (Edits{0, 0, 1, 2}));
  EXPECT_EQ(edits("a b c", "a c"), (Edits{0, 1, 0, 2}));
  EXPECT_EQ(edits("a b c", "a b d c"), (Edits{1, 0, 0, 3}));
  // Two substitutions, or an insertion and a deletion: Kaldi's compute-wer prints the latter.
  EXPECT_EQ(edits("a b", "b a"), (Edits{1, 1, 0, 1}));
  // Seven edits, or eight with three hits, which cost sclite less.
  EXPECT_EQ(edits("p q r s a b c", "a b c w x y z"), (Edits{0, 0, 7, 0}));
  EXPECT_EQ(edits("p q r s a b c", "a b c w x y z", kSclite), (Edits{4, 4, 0, 3}));
  // Three substitutions and a deletion cost sclite as much as two insertions and three deletions.
  EXPECT_EQ(edits("a b c d", "x y a", kSclite), (Edits{0, 1, 3, 0}));
  EXPECT_THAT(align_tokens(words("a b c"), words("x b")),
              ElementsAre(AlignedTokens{Edit::substitution, 0, 0}, AlignedTokens{Edit::hit, 1, 1},
                          AlignedTokens{Edit::deletion, 2, -1}));
  EXPECT_THAT(align_tokens(words("b"), words("a b")),
              ElementsAre(AlignedTokens{Edit::insertion, -1, 0}, AlignedTokens{Edit::hit, 0, 1}));
}

TEST(ErrorRate, of_nothing) {
  EXPECT_TRUE(align_tokens({}, {}).empty());
  EXPECT_EQ(edits("", "a b"), (Edits{2, 0, 0, 0}));
  EXPECT_EQ(edits("a b c", ""), (Edits{0, 3, 0, 0}));
  ErrorTally tally;
  EXPECT_EQ(tally.counts().error_rate(), 0);
  EXPECT_EQ(sentence_error_line(tally.counts()), "%SER 0.00 [ 0 / 0 ]");
  tally.add({}, {});
  EXPECT_EQ(error_line("WER", tally.counts()), "%WER 0.00 [ 0 / 0, 0 ins, 0 del, 0 sub ]");
  EXPECT_EQ(sentence_error_line(tally.counts()), "%SER 0.00 [ 0 / 1 ]");
  tally.add({}, words("a"));
  EXPECT_TRUE(std::isinf(tally.counts().error_rate()));
  EXPECT_EQ(error_line("WER", tally.counts()), "%WER inf [ 1 / 0, 1 ins, 0 del, 0 sub ]");
}

TEST(ErrorRate, no_alignment_is_cheaper) {
  std::mt19937 random(5);
  for (int i = 0; i < 1500; ++i) {
    const Tokens reference = random_tokens(random, 5), hypothesis = random_tokens(random, 5);
    for (const auto& [rule, costs] : {std::pair{kFewest, Costs{1, 1, 1}}, {kSclite, Costs{4, 3, 3}}}) {
      const auto alignment = align_tokens(reference, hypothesis, rule);
      const auto counts = count_errors(alignment);
      ASSERT_EQ(counts.substitutions * costs.substitution + counts.deletions * costs.deletion +
                    counts.insertions * costs.insertion,
                cheapest(reference, hypothesis, costs));
      // It passes through both sequences in order, and says what it does.
      int64_t r = 0, h = 0;
      for (const auto& step : alignment) {
        const bool inserted = step.edit == Edit::insertion, deleted = step.edit == Edit::deletion;
        ASSERT_EQ(step.reference, inserted ? -1 : r++);
        ASSERT_EQ(step.hypothesis, deleted ? -1 : h++);
        const bool equal = !inserted && !deleted &&
                           reference[static_cast<size_t>(step.reference)] ==
                               hypothesis[static_cast<size_t>(step.hypothesis)];
        ASSERT_EQ(step.edit == Edit::hit, equal);
      }
      ASSERT_EQ(r, counts.reference_tokens());
      ASSERT_EQ(h, counts.hits + counts.substitutions + counts.insertions);
    }
  }
}

TEST(ErrorRate, sums_and_lines) {
  ErrorTally tally;
  EXPECT_EQ(tally.add(words("a b c d"), words("a x c")).errors(), 2);
  tally.add(words("a b"), words("a b"));
  tally.add(words("b c"), words("b c a"));
  const ErrorCounts expected{6, 1, 1, 1, 3, 2};
  EXPECT_EQ(tally.counts(), expected);
  EXPECT_EQ(error_line("PER", tally.counts()), "%PER 37.50 [ 3 / 8, 1 ins, 1 del, 1 sub ]");
  EXPECT_EQ(sentence_error_line(tally.counts()), "%SER 66.67 [ 2 / 3 ]");
  ErrorCounts paper;
  paper.hits = 516, paper.insertions = 10, paper.deletions = 30, paper.substitutions = 50;
  EXPECT_EQ(error_line("WER", paper), "%WER 15.10 [ 90 / 596, 10 ins, 30 del, 50 sub ]");
}

TEST(ErrorRate, confusions_are_sorted) {
  ErrorTally tally;
  for (const char* hypothesis : {"b", "b", "c", ""}) tally.add(words("a"), words(hypothesis));
  tally.add({}, words("z"));
  for (int i = 0; i < 3; ++i) tally.add(words("d"), words("d"));
  EXPECT_THAT(tally.confusions(),
              ElementsAre(Confusion{"a", "b", 2}, Confusion{"", "z", 1}, Confusion{"a", "", 1},
                          Confusion{"a", "c", 1}, Confusion{"d", "d", 3}));
  EXPECT_EQ(confusion_table(tally.confusions()),
            "reference\thypothesis\tcount\na\tb\t2\n***\tz\t1\na\t***\t1\na\tc\t1\nd\td\t3\n");
}

class ScliteTest : public test::FolderTest {
 protected:
  /// What a command prints; nothing where it fails.
  static std::optional<std::string> run(const std::string& command) {
    FILE* pipe = ::popen((command + " 2>/dev/null").c_str(), "r");
    if (!pipe) return std::nullopt;
    std::string text;
    std::array<char, 4096> part;
    for (size_t got; (got = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
      text.append(part.data(), got);
    return ::pclose(pipe) == 0 ? std::optional(text) : std::nullopt;
  }
};

TEST_F(ScliteTest, counts_the_same) {
  std::string sclite;
  for (const char* program : {"sclite", "sctk sclite"})
    if (sclite.empty() && run("command -v " + words(program)[0])) sclite = program;
  if (sclite.empty()) GTEST_SKIP() << "there is no program sclite (Debian: sudo apt-get install sctk)";

  std::mt19937 random(7);
  std::vector<Transcript> references, hypotheses;
  std::vector<std::string> expected;
  for (int i = 0; i < 400; ++i) {
    const std::string number = std::to_string(1000 + i);
    references.push_back({random_tokens(random, 12, 4), "s", number});
    hypotheses.push_back({random_tokens(random, 12, 4), "s", number});
    const auto counts =
        count_errors(align_tokens(references.back().tokens, hypotheses.back().tokens, kSclite));
    std::ostringstream line;
    line << "(s-" << number << ") " << counts.hits << ' ' << counts.substitutions << ' ' << counts.deletions
         << ' ' << counts.insertions;
    expected.push_back(line.str());
  }
  const auto ref = folder_ / "ref.trn", hyp = folder_ / "hyp.trn";
  write_trn(ref, references);
  write_trn(hyp, hypotheses);
  const auto report =
      run(sclite + " -i spu_id -o pra stdout -r " + ref.string() + " trn -h " + hyp.string() + " trn");
  ASSERT_TRUE(report) << sclite << " failed";

  std::vector<std::string> theirs;
  std::istringstream lines(*report);
  std::string id;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("id: ")) id = line.substr(4);
    if (line.starts_with("Scores: (#C #S #D #I) ")) theirs.push_back(id + line.substr(21));
  }
  EXPECT_EQ(theirs, expected);
}

}  // namespace
}  // namespace quatrain::scores
