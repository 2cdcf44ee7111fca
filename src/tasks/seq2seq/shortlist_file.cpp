#include "tasks/seq2seq/shortlist_file.h"

#include <cstring>
#include <sstream>
#include <stdexcept>

#include "support/atomic_file.h"
#include "support/text.h"
#include "train/checksum.h"

// A line that says what the file is and has the checksum of all that follows; a line with the sizes of both
// vocabularies and the checksum of their pieces; then lists of tokens, each behind its length: that of every
// sentence, and that of each source token. Numbers are int32.
namespace quatrain::tasks {
namespace {

constexpr std::string_view kTitle = "quatrain shortlist 1 ";

void append(std::string& text, int32_t number) {
  text.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void append(std::string& text, std::span<const int32_t> list) {
  append(text, static_cast<int32_t>(list.size()));
  for (const int32_t token : list) append(text, token);
}

// Numbers as append() wrote them.
class Numbers {
 public:
  explicit Numbers(std::string_view bytes) : bytes_(bytes) {}
  std::vector<int64_t> list() {
    std::vector<int64_t> tokens(static_cast<size_t>(next()));
    for (int64_t& token : tokens) token = next();
    return tokens;
  }

 private:
  int32_t next() {
    int32_t number = 0;
    if (bytes_.size() < sizeof number) throw std::runtime_error("it ends too early");
    std::memcpy(&number, bytes_.data(), sizeof number);
    bytes_.remove_prefix(sizeof number);
    return number;
  }
  std::string_view bytes_;
};

}  // namespace

void write_shortlist(const models::Shortlist& shortlist, const std::string& pieces,
                     const std::filesystem::path& file) {
  std::string content =
      std::to_string(shortlist.sources()) + " " + std::to_string(shortlist.targets()) + " " + pieces + "\n";
  append(content, shortlist.always());
  for (int64_t source = 0; source < shortlist.sources(); ++source) append(content, shortlist.of(source));
  write_text(file, std::string(kTitle) + train::checksum(content) + "\n" + content);
}

models::Shortlist read_shortlist_file(const std::filesystem::path& file, const std::string& pieces,
                                      const std::string& way_out) {
  const auto fail = [&](const std::string& why) -> std::runtime_error {
    return std::runtime_error("the shortlist '" + file.string() + "' " + why + ": " + way_out);
  };
  constexpr size_t kMost = size_t{1} << 30;
  std::string text;
  try {
    text = read_file(file, kMost);
  } catch (const std::invalid_argument& error) {
    throw fail(std::string("cannot be read (") + error.what() + ")");
  }
  if (!text.starts_with(kTitle)) throw fail("is no file that quatrain shortlist wrote");
  const size_t first = std::min(text.find('\n'), text.size() - 1) + 1;
  const std::string_view content = std::string_view(text).substr(first);
  if (text.substr(0, first) != std::string(kTitle) + train::checksum(content) + "\n")
    throw fail("is damaged");
  const size_t second = std::min(content.find('\n'), content.size());
  std::istringstream line{std::string(content.substr(0, second))};
  int64_t sources = 0, targets = 0;
  std::string of;
  line >> sources >> targets >> of;
  if (of != pieces) throw fail("is of other pieces than the run's");
  try {
    Numbers numbers(content.substr(second + 1));
    const auto always = numbers.list();
    std::vector<std::vector<int64_t>> lists;
    for (int64_t source = 0; source < sources; ++source) lists.push_back(numbers.list());
    return {lists, always, targets};
  } catch (const std::exception& error) {
    throw fail(std::string("is damaged (") + error.what() + ")");
  }
}

}  // namespace quatrain::tasks
