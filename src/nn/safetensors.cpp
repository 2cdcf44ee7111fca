#include "quatrain/nn/safetensors.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <bit>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>

#include "support/atomic_file.h"
#include "support/json.h"

namespace quatrain::nn {
namespace {

using Json = nlohmann::json;  // an ordered one would search all names for each new one

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr uint64_t kLargestHeader = 100'000'000;  // the public reader's limit
constexpr int kDeepestHeader = 3;                 // {name: {data_offsets: [..]}}

struct Type {
  const char* name;
  at::ScalarType dtype;
};
constexpr std::array kTypes{Type{"F64", at::kDouble},    Type{"F32", at::kFloat}, Type{"F16", at::kHalf},
                            Type{"BF16", at::kBFloat16}, Type{"I64", at::kLong},  Type{"I32", at::kInt},
                            Type{"I16", at::kShort},     Type{"I8", at::kChar},   Type{"U8", at::kByte},
                            Type{"BOOL", at::kBool}};

const Type* find_type(const std::string& name) {
  const auto found =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const Type& t) { return name == t.name; });
  return found == kTypes.end() ? nullptr : &*found;
}

const Type* find_type(at::ScalarType dtype) {
  const auto found =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const Type& t) { return dtype == t.dtype; });
  return found == kTypes.end() ? nullptr : &*found;
}

// A tensor's place, as the header gives it.
struct Entry {
  std::string name;
  const Type* type;
  std::vector<int64_t> shape;
  uint64_t begin, end;
};

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : path_(path) {
    try {
      file_ = open_file(path);
    } catch (const std::invalid_argument& error) {
      fail("cannot open: ", error.what());
    }
    size_ = std::filesystem::file_size(path);
  }

  Safetensors read() {
    const Json header = read_header();
    Safetensors result;
    std::vector<Entry> entries;
    for (const auto& [name, value] : header.items()) {
      if (name == "__metadata__") {
        result.metadata = metadata(value);
      } else {
        entries.push_back(entry(name, value));
      }
    }
    check_ranges(entries);
    for (const Entry& e : entries) {
      at::Tensor tensor = at::empty(e.shape, at::TensorOptions(e.type->dtype));
      const auto size = static_cast<std::streamsize>(e.end - e.begin);
      if (size > 0) file_.read(static_cast<char*>(tensor.mutable_data_ptr()), size);
      if (!file_) fail("tensor '", shorten(e.name), "' cannot be read");
      if (e.type->dtype == at::kBool) check_bools(e, tensor);
      result.tensors.emplace_back(e.name, std::move(tensor));
    }
    return result;
  }

 private:
  template <typename... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    throw std::runtime_error(c10::str("weights: '", path_.string(), "': ", parts...));
  }

  Json read_header() {
    uint64_t length = 0;
    if (size_ < sizeof length)
      fail("not a safetensors file: it has ", size_, " bytes, but the header's length alone needs 8");
    file_.read(reinterpret_cast<char*>(&length), sizeof length);
    if (length > size_ - sizeof length)
      fail("not a safetensors file, or cut short: by its first 8 bytes the header has ", length,
           " bytes, but the file has ", size_);
    if (length > kLargestHeader)
      fail("the header has ", length, " bytes, but may have at most ", kLargestHeader);
    std::string text(length, '\0');
    file_.read(text.data(), static_cast<std::streamsize>(length));
    if (!file_) fail("the header cannot be read");
    data_size_ = size_ - sizeof length - length;

    std::set<std::string> names;  // gathered here, because a parsed object has lost its duplicates
    const auto seen = [&](int depth, const std::string& name) {
      if (depth == 1 && !names.insert(name).second) fail("tensor '", shorten(name), "' occurs twice");
    };
    Json header;
    try {
      header = parse_json<Json>(text, kDeepestHeader, seen);
    } catch (const TextError& error) {
      fail("the header cannot be read: ", error.what());
    }
    if (!header.is_object()) fail("the header is not a JSON object");
    return header;
  }

  std::map<std::string, std::string> metadata(const Json& value) const {
    if (!value.is_object()) fail("__metadata__ must be an object of texts");
    std::map<std::string, std::string> result;
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) fail("__metadata__ '", shorten(key), "' must be a text");
      result[key] = text.get<std::string>();
    }
    return result;
  }

  Entry entry(const std::string& name, const Json& value) const {
    const auto unsigned_numbers = [&](const char* key) {
      const auto found = value.find(key);
      if (found == value.end() || !found->is_array())
        fail("tensor '", shorten(name), "' has no list '", key, "'");
      std::vector<uint64_t> numbers;
      for (const Json& number : *found) {
        if (!number.is_number_unsigned())
          fail("tensor '", shorten(name), "': '", key, "' must be a list of whole numbers from 0 on");
        numbers.push_back(number.get<uint64_t>());
      }
      return numbers;
    };
    if (!value.is_object()) fail("tensor '", shorten(name), "' is not described by an object");
    const auto dtype = value.find("dtype");
    if (dtype == value.end() || !dtype->is_string()) fail("tensor '", shorten(name), "' has no dtype");
    const Type* type = find_type(dtype->get<std::string>());
    if (!type)
      fail("tensor '", shorten(name), "' has the unknown dtype '", shorten(dtype->get<std::string>()), "'");

    const auto shape = unsigned_numbers("shape");
    const auto offsets = unsigned_numbers("data_offsets");
    if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data_size_)
      fail("tensor '", shorten(name), "' has data_offsets outside the ", data_size_, " bytes of data");
    uint64_t bytes = c10::elementSize(type->dtype), reach = bytes;
    bool overflow = false;
    for (const uint64_t size : shape) {
      overflow = overflow || size > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
      overflow = __builtin_mul_overflow(bytes, size, &bytes) || overflow;
      // Beside a size of 0 the others must be sizes too: strides are made of them.
      overflow = __builtin_mul_overflow(reach, std::max<uint64_t>(size, 1), &reach) || overflow;
    }
    overflow = overflow || reach > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    if (overflow || bytes != offsets[1] - offsets[0])
      fail("tensor '", shorten(name), "' of shape [", shorten(fmt(shape)), "] and type ", type->name,
           " does not fit its ", offsets[1] - offsets[0], " bytes");
    return {name, type, {shape.begin(), shape.end()}, offsets[0], offsets[1]};
  }

  static std::string fmt(const std::vector<uint64_t>& shape) {
    std::string text;
    for (const uint64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
    return text;
  }

  // The ranges cover the data, each byte once.
  void check_ranges(std::vector<Entry>& entries) const {
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    uint64_t at = 0;
    for (const Entry& e : entries) {
      if (e.begin < at) fail("tensor '", shorten(e.name), "' overlaps the tensor before it");
      if (e.begin > at)
        fail("there is a gap of ", e.begin - at, " bytes before tensor '", shorten(e.name), "'");
      at = e.end;
    }
    if (at != data_size_)
      fail("cut short or too long: the tensors fill ", at, " bytes, but the file has ", data_size_,
           " bytes of data");
  }

  // Any byte but 0 and 1 in a bool is undefined behaviour later on.
  void check_bools(const Entry& e, const at::Tensor& tensor) const {
    const auto* bytes = static_cast<const uint8_t*>(tensor.const_data_ptr());
    if (std::any_of(bytes, bytes + tensor.numel(), [](uint8_t b) { return b > 1; }))
      fail("tensor '", shorten(e.name), "' of type BOOL contains bytes other than 0 and 1");
  }

  std::filesystem::path path_;
  std::ifstream file_;
  uint64_t size_ = 0;
  uint64_t data_size_ = 0;
};

}  // namespace

const at::Tensor* Safetensors::find(const std::string& name) const {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) { return t.first == name; });
  return found == tensors.end() ? nullptr : &found->second;
}

void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata) {
  const auto check = [&](bool condition, const std::string& name, const std::string& rule) {
    if (!condition)
      throw std::runtime_error("write_safetensors: '" + path.string() + "': tensor '" + name + "' " + rule);
  };
  // Widest types first: then each tensor is aligned to its own type.
  NamedTensors ordered = tensors;
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
    return a.second.element_size() > b.second.element_size();
  });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (auto& [name, tensor] : ordered) {
    check(tensor.defined(), name, "is undefined");
    const Type* type = find_type(tensor.scalar_type());
    check(type != nullptr, name,
          std::string("has the type ") + c10::toString(tensor.scalar_type()) +
              ", which the format does not have");
    check(name != "__metadata__" && !header.contains(name), name, "occurs twice, or its name is reserved");
    const uint64_t end = offset + tensor.nbytes();
    header[name] = {{"dtype", type->name}, {"shape", tensor.sizes().vec()}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception&) {
    throw std::runtime_error("write_safetensors: '" + path.string() + "': a name or a text is not UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');

  AtomicFile file(path);
  const uint64_t length = text.size();
  file.write(&length, sizeof length);
  file.write(text.data(), text.size());
  for (const auto& [name, tensor] : ordered) {
    const at::Tensor plain = tensor.detach().cpu().contiguous();
    file.write(plain.const_data_ptr(), plain.nbytes());
  }
  file.commit();
}

Safetensors read_safetensors(const std::filesystem::path& path) {
  return Reader(path).read();
}

}  // namespace quatrain::nn
