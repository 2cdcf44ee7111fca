#include "data/kaldi_values.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "data/text_file.h"
#include "support/parse_number.h"

namespace quatrain::data {
namespace {

constexpr int64_t kMostValues = int64_t{1} << 40;  // of a matrix: so many bytes can be counted
constexpr int64_t kBeyond = 3;        // rows that a range may end behind the matrix, as Kaldi has it
constexpr size_t kLongestToken = 64;  // bytes of a number, or of the name of a type
constexpr char kFour = 4;             // before each number of four bytes

/// How a binary matrix is stored, and the bytes of a number.
enum class Storage { floats, doubles, by_column, two_bytes, one_byte };

int64_t width(Storage storage) {
  switch (storage) {
    case Storage::floats:
      return 4;
    case Storage::doubles:
      return 8;
    case Storage::two_bytes:
      return 2;
    default:
      return 1;
  }
}

struct Header {
  Storage storage;
  float least = 0, range = 0;  // of compressed matrices
  int64_t rows = 0, columns = 0;
};

template <class Number>
Number number_at(const std::string& bytes, size_t index) {
  Number number;
  std::memcpy(&number, bytes.data() + index * sizeof number, sizeof number);
  return number;
}

at::Tensor as_tensor(std::vector<float>& values, int64_t rows, int64_t columns) {
  return torch::from_blob(values.data(), {rows, columns}).clone();
}

/// One value of a file.
class Value {
 public:
  Value(ByteFile& file, const std::string& entry) : file_(file), entry_(entry) {}

  at::Tensor matrix(const MatrixRange& range) {
    if (!binary()) {
      const auto whole = text_matrix();
      const auto [first, count] = rows_of(range, whole.size(0));
      return columns_of(range, whole.narrow(0, first, count));
    }
    const Header header = matrix_header();
    const auto [first, count] = rows_of(range, header.rows);
    auto values =
        header.storage == Storage::by_column ? columns(header, first, count) : rows(header, first, count);
    check_finite(values, header.columns);
    return columns_of(range, as_tensor(values, count, header.columns));
  }

  KaldiSize size(const MatrixRange& range) {
    KaldiSize whole;
    if (binary()) {
      const Header header = matrix_header();
      whole = {header.rows, header.columns};
    } else {
      const auto matrix = text_matrix();
      whole = {matrix.size(0), matrix.size(1)};
    }
    return {rows_of(range, whole.rows).second, columns_of(range, whole.columns).second};
  }

  std::vector<int32_t> integers() {
    if (!binary()) return text_integers();
    if (file_.peek() != kFour)
      fail("holds " + type_name(token()) + ", but whole numbers are needed, as in an alignment");
    const int64_t count = marked_size("its length");
    constexpr int64_t kMarked = 5;  // bytes
    require(count * kMarked, "its " + std::to_string(count) + " numbers take");
    const auto bytes = take(count * kMarked, "its numbers");
    std::vector<int32_t> values(static_cast<size_t>(count));
    for (size_t i = 0; i < values.size(); ++i) {
      const char* at = bytes.data() + i * kMarked;
      if (*at != kFour)
        fail("is damaged: its number " + std::to_string(i) + " (from 0 on) is not of four bytes");
      std::memcpy(&values[i], at + 1, sizeof values[i]);
    }
    return values;
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const { fail_value(file_, entry_, problem); }

  /// Whether the value is binary; its mark is passed.
  bool binary() {
    if (file_.peek() != 0) return false;
    if (take(2, "its first mark") != std::string("\0B", 2))
      fail("begins with a byte of 0, but not with the mark \"\\0B\"");
    return true;
  }

  std::string take(int64_t count, const std::string& what) {
    auto bytes = file_.read(count);
    if (static_cast<int64_t>(bytes.size()) < count)
      fail("is cut off: " + what + " should take " + std::to_string(count) +
           " bytes, but the file ends after " + std::to_string(bytes.size()));
    return bytes;
  }

  void require(int64_t bytes, const std::string& what) const {
    if (const auto left = file_.left(); left && bytes > *left)
      fail("is damaged or cut off: " + what + " " + std::to_string(bytes) + " bytes, but the file has only " +
           std::to_string(*left) + " left");
  }

  /// A name that a space ends.
  std::string token() {
    std::string name;
    for (int byte; (byte = file_.get()) != ' ' && name.size() < kLongestToken;) {
      if (byte < 0) fail("is cut off where it should say what it is");
      name += static_cast<char>(byte);
    }
    return name;
  }

  static std::string type_name(const std::string& token) {
    if (token == "FV" || token == "DV") return "a vector (" + token + ")";
    if (token == "FM" || token == "DM" || token == "CM" || token == "CM2" || token == "CM3")
      return "a matrix (" + token + ")";
    const bool printed = std::ranges::all_of(token, [](char byte) { return byte > ' ' && byte <= '~'; });
    return "something else (" + (printed ? quote(token) : "bytes that are no text") + ")";
  }

  int64_t size_of(int32_t number, const std::string& what) const {
    if (number < 0) fail("is damaged: " + what + " is negative (" + std::to_string(number) + ")");
    return number;
  }
  int64_t marked_size(const std::string& what) {
    const auto bytes = take(5, what);
    if (bytes[0] != kFour) fail("is damaged: " + what + " is not a number of four bytes");
    return size_of(number_at<int32_t>(bytes.substr(1), 0), what);
  }

  /// The header of a binary matrix, compared with the file.
  Header matrix_header() {
    if (file_.peek() == kFour) fail("holds whole numbers, but a matrix is needed");
    const std::string name = token();
    Header header{};
    if (name == "FM" || name == "DM") {
      header.storage = name == "FM" ? Storage::floats : Storage::doubles;
      header.rows = marked_size("its number of rows");
      header.columns = marked_size("its number of columns");
    } else if (name == "CM" || name == "CM2" || name == "CM3") {
      header.storage = name == "CM"    ? Storage::by_column
                       : name == "CM2" ? Storage::two_bytes
                                       : Storage::one_byte;
      const auto bytes = take(16, "its header");
      header.least = number_at<float>(bytes, 0);
      header.range = number_at<float>(bytes, 1);
      header.rows = size_of(number_at<int32_t>(bytes, 2), "its number of rows");
      header.columns = size_of(number_at<int32_t>(bytes, 3), "its number of columns");
    } else {
      fail("holds " + type_name(name) + ", but a matrix is needed (FM, DM, CM, CM2 or CM3)");
    }
    const std::string size = std::to_string(header.rows) + " rows of " + std::to_string(header.columns);
    if ((header.rows == 0) != (header.columns == 0) ||
        header.rows > kMostValues / std::max<int64_t>(header.columns, 1))
      fail("cannot be a matrix of " + size + " numbers: it is damaged");
    const int64_t columns_bytes = header.storage == Storage::by_column ? header.columns * 8 : 0;
    require(header.rows * header.columns * width(header.storage) + columns_bytes,
            "its " + size + " numbers take");
    return header;
  }

  /// The first one that is meant, and how many.
  std::pair<int64_t, int64_t> choose(const std::optional<KaldiRange>& range, int64_t count, int64_t beyond,
                                     const std::string& what) const {
    if (!range) return {0, count};
    if (range->first >= count || range->last >= count + beyond)
      fail("has " + std::to_string(count) + " " + what + ", but those from " + std::to_string(range->first) +
           " to " + std::to_string(range->last) + " (from 0 on) are asked for");
    return {range->first, std::min(range->last, count - 1) - range->first + 1};
  }
  std::pair<int64_t, int64_t> rows_of(const MatrixRange& range, int64_t rows) const {
    return choose(range.rows, rows, kBeyond, "rows");
  }
  std::pair<int64_t, int64_t> columns_of(const MatrixRange& range, int64_t columns) const {
    return choose(range.columns, columns, 0, "columns");
  }
  at::Tensor columns_of(const MatrixRange& range, const at::Tensor& rows) const {
    const auto [first, count] = columns_of(range, rows.size(1));
    return rows.narrow(1, first, count).contiguous();
  }

  /// Some rows of a matrix that is stored row by row.
  std::vector<float> rows(const Header& header, int64_t first, int64_t count) {
    const int64_t row = header.columns * width(header.storage);
    file_.skip(first * row);
    const auto bytes = take(count * row, "its numbers");
    std::vector<float> values(static_cast<size_t>(count * header.columns));
    const double step = header.range / (header.storage == Storage::two_bytes ? 65535.0 : 255.0);
    const auto scaled = [&](double number) { return static_cast<float>(header.least + step * number); };
    for (size_t i = 0; i < values.size(); ++i) switch (header.storage) {
        case Storage::floats:
          values[i] = number_at<float>(bytes, i);
          break;
        case Storage::doubles:
          values[i] = static_cast<float>(number_at<double>(bytes, i));
          break;
        case Storage::two_bytes:
          values[i] = scaled(number_at<uint16_t>(bytes, i));
          break;
        default:
          values[i] = scaled(number_at<uint8_t>(bytes, i));
      }
    return values;
  }

  /// Some rows of a matrix of one byte a number that is stored column by column. Each column has its least
  /// value, its quartiles and its greatest one, at 0, 64, 192 and 255; values between are on straight lines.
  std::vector<float> columns(const Header& header, int64_t first, int64_t count) {
    const auto marks = take(header.columns * 8, "its columns' ranges");
    const auto bytes = take(header.rows * header.columns, "its numbers");
    std::vector<float> values(static_cast<size_t>(count * header.columns));
    for (int64_t column = 0; column < header.columns; ++column) {
      double mark[4];
      for (size_t i = 0; i < 4; ++i)
        mark[i] = header.least +
                  header.range / 65535.0 * number_at<uint16_t>(marks, static_cast<size_t>(column) * 4 + i);
      for (int64_t row = 0; row < count; ++row) {
        const auto at = number_at<uint8_t>(bytes, static_cast<size_t>(column * header.rows + first + row));
        const double value = at <= 64    ? mark[0] + (mark[1] - mark[0]) * at / 64
                             : at <= 192 ? mark[1] + (mark[2] - mark[1]) * (at - 64) / 128
                                         : mark[2] + (mark[3] - mark[2]) * (at - 192) / 63;
        values[static_cast<size_t>(row * header.columns + column)] = static_cast<float>(value);
      }
    }
    return values;
  }

  void check_finite(const std::vector<float>& values, int64_t columns) const {
    for (size_t i = 0; i < values.size(); ++i)
      if (!std::isfinite(values[i])) {
        const auto index = static_cast<int64_t>(i);
        fail("holds what is no finite number of single precision in row " + std::to_string(index / columns) +
             ", column " + std::to_string(index % columns) + " (from 0 on)");
      }
  }

  static bool is_space(int byte) { return byte == ' ' || byte == '\t' || byte == '\r'; }

  /// A word of text, which anything of " \t\r\n;[]" or the end of the file ends.
  std::string word() {
    std::string text;
    for (int byte = file_.peek(); byte >= 0 && !is_space(byte) && !std::strchr("\n;[]", byte);
         byte = file_.peek()) {
      if (text.size() == kLongestToken || byte < ' ' || byte > '~')
        fail("is no text of numbers: \"" + text + "\" goes on with other bytes");
      text += static_cast<char>(file_.get());
    }
    return text;
  }

  /// A matrix as Kaldi prints it: [, rows that end in a line's end or a semicolon, ].
  at::Tensor text_matrix() {
    while (is_space(file_.peek()) || file_.peek() == '\n') file_.get();
    if (file_.peek() < 0) fail("has no value; the file is cut off");
    if (file_.peek() != '[') fail("holds no matrix, which would begin with \"\\0B\" or \"[\"");
    file_.get();
    std::vector<float> values;
    int64_t rows = 0, columns = 0, in_row = 0;
    for (bool inside = true; inside;) {
      const int byte = file_.peek();
      if (byte < 0) fail("is cut off: no \"]\" ends the matrix");
      if (is_space(byte)) {
        file_.get();
      } else if (byte == '\n' || byte == ';' || byte == ']') {
        file_.get();
        inside = byte != ']';
        if (in_row == 0) continue;
        if (rows > 0 && in_row != columns)
          fail("has " + std::to_string(columns) + " columns in its first row, but " + std::to_string(in_row) +
               " in row " + std::to_string(rows) + " (from 0 on)");
        columns = std::exchange(in_row, 0);
        ++rows;
      } else {
        values.push_back(text_number());
        ++in_row;
      }
    }
    check_finite(values, std::max<int64_t>(columns, 1));
    while (is_space(file_.peek())) file_.get();
    if (const int byte = file_.get(); byte >= 0 && byte != '\n')
      fail("goes on behind the \"]\" of its matrix");
    return as_tensor(values, rows, columns);
  }

  float text_number() {
    const std::string text = word();
    const auto value = parse_number<double>(text);
    if (!value) fail("holds " + quote(text) + ", which is no number");
    return static_cast<float>(*value);
  }

  /// Numbers up to the end of the line, which must be there: the last number may be cut off otherwise.
  std::vector<int32_t> text_integers() {
    std::vector<int32_t> values;
    for (;;) {
      while (is_space(file_.peek())) file_.get();
      if (file_.peek() < 0) fail("is cut off: no end of a line is behind its numbers");
      if (file_.peek() == '\n') break;
      const std::string text = word();
      const auto value = whole_number(text);
      if (!value || *value < std::numeric_limits<int32_t>::min() ||
          *value > std::numeric_limits<int32_t>::max())
        fail("holds " + (text.empty() ? "a mark of a matrix" : quote(text)) +
             ", but whole numbers of 32 bits are needed");
      values.push_back(static_cast<int32_t>(*value));
    }
    file_.get();
    return values;
  }

  ByteFile& file_;
  const std::string& entry_;
};

}  // namespace

void fail_value(const ByteFile& file, const std::string& entry, const std::string& problem) {
  TORCH_CHECK(false, "kaldi: ", file.path().string(), ": ", entry, " ", problem,
              "; copy the file again, or write it again by copy-feats or copy-int-vector");
}

at::Tensor read_matrix(ByteFile& file, const std::string& entry, const MatrixRange& range) {
  return Value(file, entry).matrix(range);
}

std::vector<int32_t> read_integers(ByteFile& file, const std::string& entry) {
  return Value(file, entry).integers();
}

KaldiSize read_matrix_size(ByteFile& file, const std::string& entry, const MatrixRange& range) {
  return Value(file, entry).size(range);
}

}  // namespace quatrain::data
