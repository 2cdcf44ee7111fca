#include <png.h>

#include <torch/types.h>

#include <csetjmp>
#include <cstring>

#include "data/image_decoders.h"

namespace quatrain::data {
namespace {

/// libpng's image, freed at the end.
struct Png : png_image {
  Png() : png_image{} { version = PNG_IMAGE_VERSION; }
  ~Png() { png_image_free(this); }
  Png(const Png&) = delete;
  Png& operator=(const Png&) = delete;
};

/// Four bytes from `at` on.
size_t number_at(std::string_view bytes, size_t at) {
  size_t number = 0;
  for (size_t i = 0; i < 4; ++i) number = number << 8 | static_cast<uint8_t>(bytes[at + i]);
  return number;
}

/// Width and height by the first chunk; 0 where there is none.
std::pair<int64_t, int64_t> size_in_header(std::string_view bytes) {
  constexpr size_t kName = 12, kWidth = 16, kHeight = 20;  // places in the file
  if (bytes.size() < kHeight + 4 || bytes.substr(kName, 4) != "IHDR") return {};
  return {number_at(bytes, kWidth), number_at(bytes, kHeight)};
}

/// Whether the file has its last chunk, which libpng does not read. The chunks before it must be good.
bool has_end(std::string_view bytes) {
  constexpr size_t kSignature = 8, kAround = 12;  // a chunk's length, its name and its checksum
  for (size_t chunk = kSignature; chunk + kAround <= bytes.size();) {
    if (bytes.substr(chunk + 4, 4) == "IEND") return true;
    chunk += kAround + number_at(bytes, chunk);
  }
  return false;
}

/// What one of libpng's streams reads or writes, and why it stopped.
struct Stream {
  std::string_view from;
  std::string to;
  std::string message;
};

void read_bytes(png_structp png, png_bytep to, size_t count) {
  auto& stream = *static_cast<Stream*>(png_get_io_ptr(png));
  if (count > stream.from.size()) png_error(png, "it ends too soon");
  std::memcpy(to, stream.from.data(), count);
  stream.from.remove_prefix(count);
}
void write_bytes(png_structp png, png_bytep from, size_t count) {
  bool written = true;
  try {
    static_cast<Stream*>(png_get_io_ptr(png))->to.append(reinterpret_cast<const char*>(from), count);
  } catch (...) {
    written = false;  // an exception must not pass through C
  }
  if (!written) png_error(png, "there is no memory for it");
}
[[noreturn]] void stop(png_structp png, png_const_charp why) {
  try {
    static_cast<Stream*>(png_get_error_ptr(png))->message = why;
  } catch (...) {
  }
  png_longjmp(png, 1);
}
void say_nothing(png_structp, png_const_charp) {}

/// The same file without interlacing in stream.to; false where it is damaged. What jumps back here leaves
/// nothing to destroy.
bool write_plain(Stream& stream, png_structp in, png_structp out, png_infop info) {
  if (!in || !out || !info) return false;
  if (setjmp(png_jmpbuf(in))) return false;
  if (setjmp(png_jmpbuf(out))) return false;
  png_set_read_fn(in, &stream, read_bytes);
  // Texts and other chunks that no pixel depends on may be many, long and wrong.
  png_set_keep_unknown_chunks(in, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  static const png_byte pixels[] = "gAMA\0cHRM\0sRGB\0iCCP\0sBIT\0bKGD\0tRNS";
  png_set_keep_unknown_chunks(in, PNG_HANDLE_CHUNK_AS_DEFAULT, pixels, sizeof(pixels) / 5);
  png_read_png(in, info, PNG_TRANSFORM_IDENTITY, nullptr);
  png_set_IHDR(out, info, png_get_image_width(in, info), png_get_image_height(in, info),
               png_get_bit_depth(in, info), png_get_color_type(in, info), PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_set_write_fn(out, &stream, write_bytes, nullptr);
  png_set_compression_level(out, 0);
  png_set_filter(out, PNG_FILTER_TYPE_BASE, PNG_FILTER_NONE);
  png_write_png(out, info, PNG_TRANSFORM_IDENTITY, nullptr);
  return true;
}

bool is_interlaced_16(std::string_view bytes) {
  constexpr size_t kDepth = 24, kInterlace = 28;  // places in the file's header
  return bytes.size() > kInterlace && bytes[kDepth] == 16 && bytes[kInterlace] == 1;
}

/// libpng's simple reader gives wrong pixels for interlaced ones of 16 bits, and up to 1.6.50 writes behind
/// its memory (CVE-2025-65018).
bool without_interlacing(Stream& stream) {
  png_structp in = png_create_read_struct(PNG_LIBPNG_VER_STRING, &stream, stop, say_nothing);
  png_structp out = png_create_write_struct(PNG_LIBPNG_VER_STRING, &stream, stop, say_nothing);
  png_infop info = in ? png_create_info_struct(in) : nullptr;
  const bool done = write_plain(stream, in, out, info);
  png_destroy_read_struct(&in, &info, nullptr);
  png_destroy_write_struct(&out, nullptr);
  return done;
}

}  // namespace

at::Tensor decode_png(std::string_view bytes, const std::string& name, int64_t most_pixels) {
  Png png;
  const auto check = [&](bool done, const char* otherwise = nullptr) {
    TORCH_CHECK(done, "image: the PNG file ", name, " is damaged or cut off (",
                otherwise ? otherwise : png.message, "); copy or convert it again");
  };
  // libpng, which refuses more than a million pixels a side, would call such a file damaged.
  if (const auto [width, height] = size_in_header(bytes); width > 0 && height > 0)
    check_pixels(name, height, width, most_pixels);
  check(png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()) != 0);
  check_pixels(name, png.height, png.width, most_pixels);
  Stream plain{.from = bytes, .to = {}, .message = {}};
  if (is_interlaced_16(bytes)) {
    check(without_interlacing(plain), plain.message.c_str());
    png_image_free(&png);
    check(png_image_begin_read_from_memory(&png, plain.to.data(), plain.to.size()) != 0);
  }
  png.format = PNG_FORMAT_RGB;
  // Without this 16 bits are taken for linear light where the file does not say what they are.
  png.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  const at::Tensor image =
      torch::empty({static_cast<int64_t>(png.height), static_cast<int64_t>(png.width), 3}, torch::kUInt8);
  const png_color black{0, 0, 0};
  check(png_image_finish_read(&png, &black, image.data_ptr<uint8_t>(), /*row_stride=*/0,
                              /*colormap=*/nullptr) != 0);
  check(has_end(bytes), "it has no IEND chunk");
  return image;
}

}  // namespace quatrain::data
