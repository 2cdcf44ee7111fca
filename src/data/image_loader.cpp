#include "quatrain/data/image_loader.h"

#include <torch/types.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <numeric>
#include <stop_token>
#include <thread>
#include <utility>

#include "data/image_writer.h"
#include "data/random.h"
#include "support/parts.h"

namespace quatrain::data {

struct ImageLoader::Number {
  int64_t epoch, index;
  auto operator<=>(const Number&) const = default;
};

ImageBatch ImageBatch::to(at::Device device) const {
  return {images.to(device), labels.to(device), indices};
}

/// Makes any batch; may be called from several threads.
class ImageLoader::Maker {
 public:
  Maker(ImageSet set, const ImageLoaderOptions& options)
      : set_(std::move(set)),
        options_(options),
        writer_(options.scale, options.mode, set_.images.size(2), set_.images.size(3)) {}

  const ImageSet& set() const { return set_; }
  int64_t batches() const { return count_parts(set_.size(), options_.batch_size); }

  ImageBatch make(Number number) {
    const auto order = order_of(number.epoch);
    const int64_t begin = number.index * options_.batch_size;
    const int64_t count = std::min(options_.batch_size, set_.size() - begin);
    const int64_t height = set_.images.size(2), width = set_.images.size(3), pixels = height * width;
    ImageBatch batch{torch::empty({count, channels(options_.mode), height, width}),
                     torch::empty({count}, torch::kInt64),
                     {order->begin() + begin, order->begin() + begin + count}};
    const auto* images = set_.images.data_ptr<uint8_t>();
    const auto* labels = set_.labels.data_ptr<int64_t>();
    auto* input = batch.images.data_ptr<float>();
    for (int64_t row = 0; row < count; ++row) {
      const int64_t place = batch.indices[static_cast<size_t>(row)];
      const ImageMove move = options_.augmentation ? draw_move(*options_.augmentation, height, width,
                                                               options_.seed, number.epoch, place)
                                                   : ImageMove();
      writer_.write(images + place * 3 * pixels, move, input + row * channels(options_.mode) * pixels);
      batch.labels.data_ptr<int64_t>()[row] = labels[place];
    }
    return batch;
  }

 private:
  using Order = std::shared_ptr<const std::vector<int64_t>>;

  Order order_of(int64_t epoch) {
    if (!options_.shuffle) epoch = 0;
    const std::lock_guard lock(mutex_);
    // Where an epoch ends and the next begins, both are asked for in turn.
    if (const auto found = orders_.find(epoch); found != orders_.end()) return found->second;
    if (orders_.size() >= 2) orders_.clear();
    std::vector<int64_t> order(static_cast<size_t>(set_.size()));
    std::iota(order.begin(), order.end(), 0);
    if (options_.shuffle) Random(options_.seed, static_cast<uint64_t>(epoch)).shuffle(order);
    return orders_[epoch] = std::make_shared<const std::vector<int64_t>>(std::move(order));
  }

  const ImageSet set_;
  const ImageLoaderOptions options_;
  const ImageWriter writer_;
  std::mutex mutex_;
  std::map<int64_t, Order> orders_;  // of epochs
};

/// Threads that make the batches which are wanted next.
class ImageLoader::Ahead {
 public:
  Ahead(Maker& maker, int64_t threads, int64_t ahead) : maker_(maker), ahead_(ahead) {
    for (int64_t i = 0; i < threads; ++i)
      threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
  }

  ImageBatch take(Number number) {
    std::unique_lock lock(mutex_);
    want(number);
    const auto made = wanted_.at(number);
    changed_.wait(lock, [&] { return made->state == State::done; });
    wanted_.erase(number);
    if (made->error) std::rethrow_exception(made->error);
    return std::move(made->batch);
  }

 private:
  enum class State { waiting, begun, done };
  struct Made {
    State state = State::waiting;
    ImageBatch batch;
    std::exception_ptr error;
  };

  /// This batch and those that follow it; others are not needed any more.
  void want(Number number) {
    std::map<Number, std::shared_ptr<Made>> wanted;
    for (int64_t i = 0; i <= ahead_; ++i) {
      const auto found = wanted_.find(number);
      wanted[number] = found != wanted_.end() ? found->second : std::make_shared<Made>();
      number = number.index + 1 < maker_.batches() ? Number{number.epoch, number.index + 1}
                                                   : Number{number.epoch + 1, 0};
    }
    wanted_ = std::move(wanted);
    changed_.notify_all();
  }

  /// The first batch that nobody makes yet, or the end.
  auto next_waiting() {
    return std::ranges::find_if(wanted_,
                                [](const auto& entry) { return entry.second->state == State::waiting; });
  }

  void work(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [&] { return next_waiting() != wanted_.end(); }) &&
           !stop.stop_requested()) {
      const auto [number, made] = *next_waiting();
      made->state = State::begun;
      lock.unlock();
      try {
        made->batch = maker_.make(number);
      } catch (...) {
        made->error = std::current_exception();
      }
      lock.lock();
      made->state = State::done;
      changed_.notify_all();
    }
  }

  Maker& maker_;
  const int64_t ahead_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<Number, std::shared_ptr<Made>> wanted_;  // by the order of their use
  std::vector<std::jthread> threads_;               // the last, since they use the others to their end
};

ImageLoader::ImageLoader(ImageSet set, ImageLoaderOptions options) {
  constexpr int64_t kMostThreads = 256;
  check_images("ImageLoader", set.images);
  TORCH_CHECK(set.size() > 0, "ImageLoader: the set must hold at least one picture, got none");
  TORCH_CHECK(set.labels.dim() == 1 && set.labels.size(0) == set.size() &&
                  set.labels.scalar_type() == torch::kInt64 && set.labels.is_contiguous() &&
                  set.labels.is_cpu(),
              "ImageLoader: labels must be (", set.size(), ") of int64, contiguous and on the CPU, got ",
              set.labels.sizes(), " of ", set.labels.scalar_type());
  TORCH_CHECK(options.batch_size >= 1, "ImageLoader: batch_size must be at least 1, got ",
              options.batch_size);
  TORCH_CHECK(options.threads >= 0 && options.threads <= kMostThreads,
              "ImageLoader: threads must be from 0 to ", kMostThreads, ", got ", options.threads);
  TORCH_CHECK(options.ahead >= 1, "ImageLoader: ahead must be at least 1, got ", options.ahead);
  if (options.augmentation) {
    const auto& [padding, flip, cutout, part] = *options.augmentation;
    const int64_t side = std::min(set.images.size(2), set.images.size(3));
    TORCH_CHECK(padding >= 0 && padding < side && cutout >= 0 && cutout <= side,
                "ImageLoader: padding must be from 0 to ", side - 1, " and cutout from 0 to ", side,
                " for pictures of ", side, " pixels, got ", padding, " and ", cutout);
    TORCH_CHECK(part > 0 && part <= 1, "ImageLoader: part must be above 0 and at most 1, got ", part);
  }
  maker_ = std::make_unique<Maker>(std::move(set), options);
  if (options.threads > 0) ahead_ = std::make_unique<Ahead>(*maker_, options.threads, options.ahead);
}

ImageLoader::~ImageLoader() = default;

int64_t ImageLoader::batches() const {
  return maker_->batches();
}

int64_t ImageLoader::examples() const {
  return maker_->set().size();
}

const ImageSet& ImageLoader::set() const {
  return maker_->set();
}

ImageBatch ImageLoader::batch(int64_t epoch, int64_t index) {
  TORCH_CHECK(epoch >= 0, "ImageLoader::batch: epoch must not be negative, got ", epoch);
  TORCH_CHECK(index >= 0 && index < batches(), "ImageLoader::batch: index must be from 0 to ", batches() - 1,
              ", got ", index);
  return ahead_ ? ahead_->take({epoch, index}) : maker_->make({epoch, index});
}

}  // namespace quatrain::data
