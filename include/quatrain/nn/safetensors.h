#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "quatrain/api.h"

/// The public safetensors format: eight bytes of header length, a JSON header, the data. No code is in such a
/// file.
///
/// float64, float32, float16, bfloat16, int64, int32, int16, int8, uint8, bool. Errors are std::runtime_error
/// with one sentence that names the file.
namespace quatrain::nn {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// What a file holds.
struct QUATRAIN_API Safetensors {
  NamedTensors tensors;                         ///< in the order of their bytes
  std::map<std::string, std::string> metadata;  ///< free text by key

  /// The tensor of a name, or nullptr.
  const at::Tensor* find(const std::string& name) const;
};

/// Writes tensors (any device, any strides) and metadata. The file is written beside and renamed: a reader
/// sees the old one or the new one, whole. A name given twice, a name that is not UTF-8 and a type outside
/// the list are errors.
QUATRAIN_API void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                                    const std::map<std::string, std::string>& metadata = {});

/// Reads a file into new CPU tensors. Everything in the header is checked against the file's size before
/// memory is asked for: length, JSON, names, types, shapes, ranges (which must cover the data without gap or
/// overlap).
QUATRAIN_API Safetensors read_safetensors(const std::filesystem::path& path);

}  // namespace quatrain::nn
