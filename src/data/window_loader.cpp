#include "quatrain/data/window_loader.h"

#include <torch/types.h>

#include <algorithm>

#include "support/parts.h"

namespace quatrain::data {

WindowBatch WindowBatch::to(at::Device device) const {
  return {tokens.to(device), following.to(device)};
}

WindowLoader::WindowLoader(std::shared_ptr<const TokenStore> text, int64_t batch_size, int64_t length)
    : text_(std::move(text)), batch_size_(batch_size), length_(length) {
  TORCH_CHECK(batch_size >= 1, "WindowLoader: batch_size must be at least 1, got ", batch_size);
  TORCH_CHECK(length >= 1, "WindowLoader: length must be at least 1, got ", length);
  TORCH_CHECK(text_ && text_->size() > 0, "WindowLoader: the text must have a sequence, got none");
  column_ = (text_->length(0) - 1) / batch_size;
  TORCH_CHECK(column_ >= 1, "WindowLoader: the text must have more tokens than the batch has columns, got ",
              text_->length(0), " for batch_size = ", batch_size, "; make the batch smaller (train.batch)");
}

int64_t WindowLoader::batches() const {
  return count_parts(column_, length_);
}

int64_t WindowLoader::tokens() const {
  return column_ * batch_size_;
}

int64_t WindowLoader::left_out() const {
  return text_->length(0) - 1 - tokens();
}

WindowBatch WindowLoader::batch(int64_t epoch, int64_t index) const {
  TORCH_CHECK(epoch >= 0, "WindowLoader::batch: epoch must not be negative, got ", epoch);
  TORCH_CHECK(index >= 0 && index < batches(), "WindowLoader::batch: index must be from 0 to ", batches() - 1,
              ", got ", index);
  const int64_t begin = index * length_, width = std::min(length_, column_ - begin);
  WindowBatch batch{torch::empty({batch_size_, width}, torch::kInt64),
                    torch::empty({batch_size_, width}, torch::kInt64)};
  auto* tokens = batch.tokens.data_ptr<int64_t>();
  auto* following = batch.following.data_ptr<int64_t>();
  const auto ids = (*text_)[0];
  for (int64_t row = 0; row < batch_size_; ++row) {
    const auto window =
        ids.subspan(static_cast<size_t>(row * column_ + begin), static_cast<size_t>(width) + 1);
    std::copy(window.begin(), window.end() - 1, tokens + row * width);
    std::copy(window.begin() + 1, window.end(), following + row * width);
  }
  return batch;
}

}  // namespace quatrain::data
