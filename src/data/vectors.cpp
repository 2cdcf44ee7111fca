#include "quatrain/data/vectors.h"

#include <torch/types.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <numbers>

#include "data/random.h"
#include "data/text_file.h"
#include "support/parse_number.h"

namespace quatrain::data {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kMostNumbers = 10000;  // of a word; each word of the vocabulary gets as many

// A word's own numbers, normal with this mean and spread: whatever other words there are, and no other's.
void draw(const std::string& word, uint64_t seed, float mean, float spread, float* to, int64_t dim) {
  LineRandom random(seed, hash_of(word));
  for (int64_t i = 0; i < dim; i += 2) {  // Box and Muller's two
    const double radius = std::sqrt(-2 * std::log(1 - random.fraction())),
                 angle = 2 * std::numbers::pi * random.fraction();
    to[i] = mean + spread * static_cast<float>(radius * std::cos(angle));
    if (i + 1 < dim) to[i + 1] = mean + spread * static_cast<float>(radius * std::sin(angle));
  }
}

/// Collects the rows of the words wanted.
class Rows {
 public:
  explicit Rows(const Vocabulary& vocabulary)
      : vocabulary_(vocabulary), found_(static_cast<size_t>(vocabulary.size()), false) {}

  /// Where to put the vector of this word, or null: not wanted, or found before.
  float* want(const std::string& word, int64_t dim) {
    if (!values_.defined()) values_ = torch::zeros({vocabulary_.size(), dim});
    const int64_t id = vocabulary_.id(word);
    if (vocabulary_.word(id) != word || id == Vocabulary::kPad || found_[static_cast<size_t>(id)])
      return nullptr;
    found_[static_cast<size_t>(id)] = true;
    ++count_;
    return values_.data_ptr<float>() + id * dim;
  }

  Vectors finish(const fs::path& file, uint64_t seed) {
    TORCH_CHECK(count_ > 0, "word vectors: ", file.string(), " has a vector for none of the ",
                vocabulary_.size(), " words of the vocabulary; do both use the same spelling and case?");
    const auto found = torch::tensor(std::vector<int64_t>(found_.begin(), found_.end())).to(torch::kBool);
    const auto known = values_.index({found});
    const auto mean = known.mean().item<float>(), spread = known.std(/*unbiased=*/false).item<float>();
    for (int64_t id = 0; id < vocabulary_.size(); ++id)
      if (id != Vocabulary::kPad && !found_[static_cast<size_t>(id)])
        draw(vocabulary_.word(id), seed, mean, spread, values_.data_ptr<float>() + id * values_.size(1),
             values_.size(1));
    return {values_, count_};
  }

 private:
  const Vocabulary& vocabulary_;
  at::Tensor values_;
  std::vector<bool> found_;
  int64_t count_ = 0;
};

void check_finite(const float* row, int64_t dim, const std::string& where, const std::string& word) {
  for (int64_t i = 0; i < dim; ++i) {
    TORCH_CHECK(std::isfinite(row[i]), where, ": the vector of ", quote(word),
                " must have finite numbers, but number ", i + 1, " is ", row[i]);
  }
}

void read_bfloat16(const fs::path& file, Rows& rows) {
  fs::path list = file;
  list.replace_extension(".vocab");
  TORCH_CHECK(fs::exists(list), "word vectors: ", file.string(), " needs the list of its words in ",
              list.string(), ", but there is no such file");
  std::vector<std::string> words;
  for_each_line(list, [&](std::string_view line, int64_t) { words.emplace_back(line); });
  const auto bytes = static_cast<int64_t>(fs::file_size(file)), count = static_cast<int64_t>(words.size());
  TORCH_CHECK(bytes > 0 && bytes % (2 * count) == 0, "word vectors: ", file.string(),
              " must have equally many numbers for each word of ", list.string(), ", got ", bytes / 2,
              " numbers for ", count, " words; do the two files belong together?");
  const int64_t dim = bytes / 2 / count;
  TORCH_CHECK(dim <= kMostNumbers, "word vectors: ", file.string(), " has ", dim, " numbers for each of the ",
              count, " words in ", list.string(), ", more than ", kMostNumbers,
              "; do the two files belong together?");

  std::ifstream stream(file, std::ios::binary);
  TORCH_CHECK(stream, "word vectors: ", file.string(),
              " cannot be opened for reading: check its permissions");
  std::vector<uint16_t> row(static_cast<size_t>(dim));
  for (const auto& word : words) {
    stream.read(reinterpret_cast<char*>(row.data()), 2 * dim);
    TORCH_CHECK(stream, "word vectors: reading ", file.string(), " failed at the vector of ", quote(word));
    float* to = rows.want(word, dim);
    if (!to) continue;
    for (int64_t i = 0; i < dim; ++i)
      to[i] = std::bit_cast<float>(static_cast<uint32_t>(row[static_cast<size_t>(i)]) << 16);
    check_finite(to, dim, file.string(), word);
  }
}

void read_text(const fs::path& file, Rows& rows) {
  int64_t dim = 0, announced = -1, count = 0;
  for_each_line(file, [&](std::string_view line, int64_t number) {
    const auto fields = split(line, Tokenizer::whitespace);
    const auto width = static_cast<int64_t>(fields.size()) - 1;
    if (number == 1 && width == 1) {
      const auto words = whole_number(fields[0]), size = whole_number(fields[1]);
      if (words && size) {
        announced = *words;
        dim = *size;
        return;
      }
    }
    if (dim == 0) dim = width;
    TORCH_CHECK(width == dim && dim > 0, place(file, number), ": a line must have a word and ",
                std::max<int64_t>(dim, 1), " numbers, got ", std::max<int64_t>(width, 0), " numbers in ",
                quote(line));
    TORCH_CHECK(dim <= kMostNumbers, place(file, number), ": a word may have at most ", kMostNumbers,
                " numbers, got ", dim);
    ++count;
    float* to = rows.want(fields[0], dim);
    if (!to) return;
    for (int64_t i = 0; i < dim; ++i) {
      const auto& text = fields[static_cast<size_t>(i + 1)];
      const auto value = parse_number<float>(text);
      TORCH_CHECK(value, place(file, number), ": column ", i + 2, " must be a number, got ", quote(text));
      to[i] = *value;
    }
    check_finite(to, dim, place(file, number), fields[0]);
  });
  TORCH_CHECK(announced < 0 || announced == count, "word vectors: the first line of ", file.string(),
              " promises ", announced, " vectors, but the file contains ", count, "; is the file cut off?");
}

}  // namespace

Vectors load_vectors(const fs::path& file, const Vocabulary& vocabulary, uint64_t seed) {
  TORCH_CHECK(!fs::is_directory(file), "word vectors: ", file.string(),
              " is a folder; name a file in it, NAME.bf16 (with NAME.vocab beside it) or a text file");
  try {
    check_file(file);
  } catch (const std::invalid_argument& error) {
    TORCH_CHECK(false, "word vectors: ", file.string(), " cannot be read: ", error.what());
  }
  Rows rows(vocabulary);
  if (file.extension() == ".bf16") {
    read_bfloat16(file, rows);
  } else {
    read_text(file, rows);
  }
  return rows.finish(file, seed);
}

Vectors draw_vectors(const Vocabulary& vocabulary, int64_t dim, uint64_t seed) {
  at::Tensor values = torch::zeros({vocabulary.size(), dim});
  for (int64_t id = 0; id < vocabulary.size(); ++id)
    if (id != Vocabulary::kPad)
      draw(vocabulary.word(id), seed, 0, 1 / std::sqrt(static_cast<float>(dim)),
           values.data_ptr<float>() + id * dim, dim);
  return {values, 0};
}

}  // namespace quatrain::data
