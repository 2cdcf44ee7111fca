// Files of weights as operators.

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "quatrain/nn/safetensors.h"
#include "quatrain/nn/weights.h"

namespace quatrain::bindings {

namespace {

using Metadata = c10::Dict<std::string, std::string>;

void write(std::string_view path, const std::vector<std::string>& names, at::TensorList tensors,
           const Metadata& metadata) {
  TORCH_CHECK_VALUE(names.size() == tensors.size(), "write_safetensors: one name a tensor is needed, got ",
                    names.size(), " names for ", tensors.size(), " tensors");
  nn::NamedTensors named;
  for (size_t i = 0; i < names.size(); ++i) named.emplace_back(names[i], tensors[i]);
  std::map<std::string, std::string> texts;
  for (const auto& item : metadata) texts[item.key()] = item.value();
  nn::write_safetensors(std::string(path), named, texts);
}

std::tuple<std::vector<std::string>, std::vector<at::Tensor>, Metadata> read(std::string_view path) {
  const nn::Safetensors file = nn::read_safetensors(std::string(path));
  std::vector<std::string> names;
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : file.tensors) {
    names.push_back(name);
    tensors.push_back(tensor);
  }
  Metadata metadata;
  for (const auto& [key, value] : file.metadata) metadata.insert(key, value);
  return {names, tensors, metadata};
}

void add_algebras(std::string_view path) {
  nn::add_algebras(std::string(path));
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(quatrain, m) {
  m.def("write_safetensors(str path, str[] names, Tensor[] tensors, Dict(str, str) metadata) -> ()", &write);
  m.def("read_safetensors(str path) -> (str[], Tensor[], Dict(str, str))", &read);
  m.def("add_algebras(str path) -> ()", &add_algebras);
}

}  // namespace quatrain::bindings
