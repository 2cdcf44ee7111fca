#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "quatrain/api.h"
#include "quatrain/data/example.h"

namespace quatrain::data {

/// Options of Vocabulary::build.
struct QUATRAIN_API VocabularyOptions {
  int64_t min_count = 1;      ///< words seen less often become <unk>
  int64_t max_size = 100000;  ///< <pad> and <unk> included
};

/// The words a model knows: number 0 is <pad>, 1 is <unk>, then the commonest first, ties in byte order.
class QUATRAIN_API Vocabulary {
 public:
  static constexpr int64_t kPad = 0;
  static constexpr int64_t kUnknown = 1;

  /// <pad> and <unk> alone.
  Vocabulary();
  /// Words in the order of their numbers, from 2 on; a word that comes twice, is empty or holds white space
  /// is an error.
  explicit Vocabulary(std::vector<std::string> words);

  /// Counts the words of the examples, which should be those of the training set alone.
  static Vocabulary build(const std::vector<Example>& examples, Tokenizer tokenizer,
                          const VocabularyOptions& options = {});

  /// A word a line, <pad> and <unk> first. Written beside and renamed, so that no torn file is left.
  void save(const std::filesystem::path& file) const;
  /// The inverse of save; errors name the file and the line.
  static Vocabulary load(const std::filesystem::path& file);

  int64_t size() const { return static_cast<int64_t>(words_.size()); }
  const std::string& word(int64_t id) const;
  /// The word's number, or kUnknown.
  int64_t id(std::string_view word) const;
  /// One number a word; no words at all give {kUnknown}, so that no text is empty to a model.
  std::vector<int64_t> encode(const std::vector<std::string>& words) const;

 private:
  std::vector<std::string> words_;
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, int64_t, Hash, std::equal_to<>> ids_;
};

}  // namespace quatrain::data
