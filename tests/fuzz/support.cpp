#include "fuzz/support.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>

// Of the sanitizers' runtime; null in a build without it.
extern "C" {
[[gnu::weak]] int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, size_t),
                                                            void (*)(const volatile void*));
[[gnu::weak]] size_t __sanitizer_get_allocated_size(const volatile void*);
}

namespace quatrain::fuzz {
namespace fs = std::filesystem;
namespace {

constexpr size_t kFree = 4 << 20;  // tables, buffers of lines and the like, whatever the input
constexpr size_t kLongestMessage = 1000;

std::atomic<int64_t> held = 0, most = 0;

void on_malloc(const volatile void*, size_t size) {
  const int64_t now = held += static_cast<int64_t>(size);
  if (now > most) most = now;
}

void on_free(const volatile void* pointer) {
  if (pointer) held -= static_cast<int64_t>(__sanitizer_get_allocated_size(pointer));
}

bool count_memory() {
  return __sanitizer_install_malloc_and_free_hooks &&
         __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
}

}  // namespace

Folder::Folder() {
  std::error_code none;
  const fs::path memory = "/dev/shm";
  const fs::path parent = fs::is_directory(memory, none) ? memory : fs::temp_directory_path();
  path_ = parent / ("quatrain-fuzz-" + std::to_string(::getpid()));
  fs::create_directories(path_);
}

Folder::~Folder() {
  std::error_code none;
  fs::remove_all(path_, none);
}

fs::path Folder::write(const std::string& name, std::string_view bytes) const {
  fs::path file = path_ / name;
  const int out = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (out < 0) throw std::runtime_error("cannot write " + file.string());
  const ssize_t written = ::write(out, bytes.data(), bytes.size());
  ::close(out);
  if (written != static_cast<ssize_t>(bytes.size()))
    throw std::runtime_error("cannot write " + file.string());
  return file;
}

Memory::Memory() {
  [[maybe_unused]] static const bool counted = count_memory();
  held = most = 0;
}

void Memory::check(size_t input, size_t factor) const {
  const auto limit = static_cast<int64_t>(kFree + factor * input);
  if (most > limit)
    throw Finding("an input of " + std::to_string(input) + " bytes made the reader hold " +
                  std::to_string(most) + " bytes, more than " + std::to_string(limit));
}

void check_message(std::string_view message) {
  if (message.empty() || message.size() > kLongestMessage)
    throw Finding("a message of " + std::to_string(message.size()) +
                  " bytes is no sentence: " + std::string(message.substr(0, 200)));
}

}  // namespace quatrain::fuzz
