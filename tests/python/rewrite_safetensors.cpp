// Reads a safetensors file, says what is in it, and writes it anew: test_safetensors.py's other side.
#include <ATen/ATen.h>

#include <cstdio>
#include <exception>
#include <string_view>
#include <vector>

#include "quatrain/nn/safetensors.h"

namespace {

// The same values in another memory layout, where there is one: the axes lie in reverse order.
at::Tensor with_strides(const at::Tensor& tensor) {
  std::vector<int64_t> reversed;
  for (int64_t axis = tensor.dim() - 1; axis >= 0; --axis) reversed.push_back(axis);
  return tensor.permute(reversed).contiguous().permute(reversed);
}

}  // namespace

// usage: rewrite_safetensors FROM TO [strided]
int main(int argc, char** argv) {
  if (argc != 3 && !(argc == 4 && std::string_view(argv[3]) == "strided")) return 2;
  try {
    auto [tensors, metadata] = quatrain::nn::read_safetensors(argv[1]);
    for (auto& [name, tensor] : tensors) {
      std::printf("%s\t%s\t%s\n", name.c_str(), c10::toString(tensor.scalar_type()),
                  c10::str(tensor.sizes()).c_str());
      if (argc == 4) tensor = with_strides(tensor);
    }
    quatrain::nn::write_safetensors(argv[2], tensors, metadata);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
