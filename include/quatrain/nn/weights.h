#pragma once

#include <torch/nn/module.h>

#include <filesystem>
#include <string>
#include <vector>

#include "quatrain/api.h"
#include "quatrain/nn/safetensors.h"

/// Weights of a model in a file, with the algebras that they were trained with.
namespace quatrain::nn {

/// All parameters and buffers by their names: the module's own tensors, not copies. For each hypercomplex
/// layer the metadata hold its algebra and the hash of its table, since weights of different algebras have
/// the same names and shapes; the tables themselves travel along.
QUATRAIN_API Safetensors weights_of(const torch::nn::Module& module);

/// Writes weights_of(module) as safetensors; save_model in Python. Throws std::runtime_error, which names the
/// file.
QUATRAIN_API void save_weights(const torch::nn::Module& module, const std::filesystem::path& path);

/// Reads a file of save_weights into a module of the same structure; load_model in Python. Names, shapes,
/// algebras and table hashes must fit; else std::runtime_error names the file and says which layer or tensor
/// differs and how, and nothing is changed. Floating types may differ: values are converted to the module's.
/// What was prepared from the old weights is dropped. Modules named in `without` ("head", "encoder.layers.0")
/// keep their values, whatever the file has of them.
QUATRAIN_API void load_weights(torch::nn::Module& module, const std::filesystem::path& path,
                               const std::vector<std::string>& without = {});

/// Adds the algebras of a weights file that this process does not know (a user's own tables), so that a model
/// over them can be built before its weights are loaded; algebra.add_from_weights in Python. Throws
/// std::runtime_error, which names the file, where a name is taken by another table.
QUATRAIN_API void add_algebras(const std::filesystem::path& path);

}  // namespace quatrain::nn
