#include "quatrain/data/kaldi_archive.h"

#include <torch/types.h>
#include <zlib.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "audio_files.h"
#include "kaldi_files.h"
#include "support.h"

namespace quatrain::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class KaldiArchiveTest : public DataTest {
 protected:
  using Matrices = std::vector<std::pair<std::string, at::Tensor>>;

  static Matrices read_matrices(const std::filesystem::path& file) {
    KaldiArchive archive(file);
    Matrices all;
    std::string key;
    for (at::Tensor matrix; archive.next(key, matrix);) all.emplace_back(key, matrix);
    return all;
  }
  at::Tensor read_one(const std::string& value) const {
    const auto all = read_matrices(write("a.ark", "utt1 " + value));
    EXPECT_EQ(all.size(), 1u);
    EXPECT_EQ(all.at(0).first, "utt1");
    return all.at(0).second;
  }
  std::vector<int32_t> read_numbers(const std::string& bytes) const {
    KaldiArchive archive(write("a.ark", bytes));
    std::string key;
    std::vector<int32_t> all, values;
    while (archive.next(key, values)) all.insert(all.end(), values.begin(), values.end());
    return all;
  }
  /// What is wrong with an archive of matrices.
  std::string error(const std::string& bytes) const {
    const auto file = write("a.ark", bytes);
    const auto message = error_of([&] { read_matrices(file); });
    EXPECT_THAT(message, HasSubstr(file.string()));
    EXPECT_EQ(message.find('\n'), message.npos);
    return message;
  }
  std::string number_error(const std::string& bytes) const {
    return error_of([&] { read_numbers(bytes); });
  }
  std::filesystem::path compress(const std::string& name, const std::string& bytes) const {
    const auto file = folder_ / name;
    gzFile stream = gzopen(file.c_str(), "wb");
    gzwrite(stream, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(stream);
    return file;
  }
};

at::Tensor matrix(std::initializer_list<std::initializer_list<float>> rows) {
  std::vector<at::Tensor> all;
  for (const auto& row : rows) all.push_back(torch::tensor(std::vector<float>(row)));
  return torch::stack(all);
}

TEST_F(KaldiArchiveTest, ReadsFloatsAndDoubles) {
  EXPECT_TRUE(
      read_one(kaldi_matrix<float>(2, 3, {1, 2, 3, -4, 5.5, 6})).equal(matrix({{1, 2, 3}, {-4, 5.5, 6}})));
  EXPECT_TRUE(read_one(kaldi_matrix<double>(3, 1, {0.1, 2, 3})).equal(matrix({{0.1F}, {2}, {3}})));
  EXPECT_EQ(read_one(kaldi_matrix<float>(0, 0, {})).sizes(), (std::vector<int64_t>{0, 0}));
  // 600 kB, more than is read at once.
  std::vector<float> many(150000);
  for (size_t i = 0; i < many.size(); ++i) many[i] = static_cast<float>(i);
  const auto large = read_one(kaldi_matrix<float>(1000, 150, many));
  EXPECT_TRUE(large.equal(torch::arange(150000, torch::kFloat).view({1000, 150})));
}

TEST_F(KaldiArchiveTest, ReadsCompressedMatrices) {
  // Two columns; the first has 0, 1, 3 and 4 as its least value, quartiles and greatest one, and the second
  // twice as much: on the scale of 16 bits over a range of 65535 / 4096 these are steps of 4096.
  const float range = 65535.0F / 4096;
  const auto marks = bytes_of<uint16_t, uint16_t, uint16_t, uint16_t>(0, 4096, 12288, 16384) +
                     bytes_of<uint16_t, uint16_t, uint16_t, uint16_t>(0, 8192, 24576, 32768);
  const std::string columns("\x00\x20\x40\x80\xc0\xff\xff\x00\x40\xc0\x80\x20", 12);
  const auto by_column = read_one(kaldi_header("CM", 0, range, 6, 2) + marks + columns);
  EXPECT_TRUE(by_column.allclose(matrix({{0, 8}, {0.5, 0}, {1, 2}, {2, 6}, {3, 4}, {4, 1}}), 0, 1e-5));
  EXPECT_TRUE(read_one(kaldi_header("CM", 10, range, 1, 2) + marks + "\xc0\x40")
                  .allclose(matrix({{13, 12}}), 0, 1e-5));

  EXPECT_TRUE(read_one(kaldi_header("CM2", -1, 65535, 2, 2) +
                       bytes_of<uint16_t, uint16_t, uint16_t, uint16_t>(0, 1, 256, 65535))
                  .equal(matrix({{-1, 0}, {255, 65534}})));
  EXPECT_TRUE(read_one(kaldi_header("CM3", 0.5, 255, 2, 3) + std::string("\x00\x01\x02\x80\xfe\xff", 6))
                  .equal(matrix({{0.5, 1.5, 2.5}, {128.5, 254.5, 255.5}})));
  EXPECT_EQ(read_one(kaldi_header("CM", 0, 0, 0, 0)).numel(), 0);
}

TEST_F(KaldiArchiveTest, ReadsText) {
  const auto all = read_matrices(write("a.ark", "a  [\n  1 2 \n  -3e2 .5 ]\nb [ 1; 2 ]\r\nc  [ ]\n"));
  ASSERT_EQ(all.size(), 3u);
  EXPECT_TRUE(all[0].second.equal(matrix({{1, 2}, {-300, 0.5}})));
  EXPECT_EQ(all[1].first, "b");
  EXPECT_TRUE(all[1].second.equal(matrix({{1}, {2}})));
  EXPECT_EQ(all[2].second.sizes(), (std::vector<int64_t>{0, 0}));
  EXPECT_THAT(read_numbers("a 1 2 3 \nb\nc -4 2147483647\n"), ElementsAre(1, 2, 3, -4, 2147483647));
}

TEST_F(KaldiArchiveTest, ReadsWholeNumbers) {
  EXPECT_THAT(read_numbers("a " + kaldi_integers({5, -1, 70000}) + "b " + kaldi_integers({}) + "c " +
                           kaldi_integers({8})),
              ElementsAre(5, -1, 70000, 8));
}

TEST_F(KaldiArchiveTest, ReadsCompressedFiles) {
  const std::string bytes =
      "a " + kaldi_matrix<float>(1, 2, {1, 2}) + "b " + kaldi_matrix<float>(1, 2, {3, 4});
  const auto file = compress("a.gz", bytes);
  EXPECT_TRUE(read_matrices(file).at(1).second.equal(matrix({{3, 4}})));
  EXPECT_THAT(error_of([&] { read_kaldi_matrix(file.string() + ":2"); }),
              AllOf(HasSubstr("a.gz"), HasSubstr("gunzip")));
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 12);
  EXPECT_THAT(error_of([&] { read_matrices(file); }), AllOf(HasSubstr("a.gz"), HasSubstr("cut off")));
  // Its length is not known, and what it promises is not taken from memory.
  const auto liar = compress("b.gz", "a " + kaldi_matrix<float>(2000000, 50000, {1}));
  EXPECT_THAT(error_of([&] { read_matrices(liar); }),
              AllOf(HasSubstr("b.gz"), HasSubstr("the entry \"a\" is cut off")));
}

TEST_F(KaldiArchiveTest, ReadsWhatALocationNames) {
  const std::string first = "a " + kaldi_matrix<float>(1, 1, {7});
  const auto ark = write("x/a.ark", first + "b " + kaldi_matrix<float>(4, 2, {1, 2, 3, 4, 5, 6, 7, 8}));
  const std::string at = ark.string() + ":" + std::to_string(first.size() + 2);
  write("x/c.mat", kaldi_header("CM2", 0, 65535, 3, 1) + bytes_of<uint16_t, uint16_t, uint16_t>(9, 8, 7));
  write("x/d.mat", " [ 1 2\n 3 4 ]\n");
  const auto script = write("x/feats.scp", "a a.ark:2\n\nb\t" + at + "[1:2] \nc c.mat[1:4]\nd d.mat[0:0]\n");
  const auto entries = read_kaldi_script(script);
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(entries[0].key, "a");
  EXPECT_EQ(entries[0].location, ark.string() + ":2");
  EXPECT_TRUE(read_kaldi_matrix(entries[0].location).equal(matrix({{7}})));
  EXPECT_TRUE(read_kaldi_matrix(entries[1].location).equal(matrix({{3, 4}, {5, 6}})));
  EXPECT_TRUE(read_kaldi_matrix(entries[2].location).equal(matrix({{8}, {7}})));  // two rows beyond are cut
  EXPECT_TRUE(read_kaldi_matrix(entries[3].location).equal(matrix({{1, 2}})));
  const std::vector<std::pair<int64_t, int64_t>> sizes{{1, 1}, {2, 2}, {2, 1}, {1, 2}};
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto [rows, columns] = read_kaldi_size(entries[i].location);
    EXPECT_EQ(std::pair(rows, columns), sizes[i]) << i;
  }
  // Rows of columns that are stored one after the other.
  const auto marks = bytes_of<uint16_t, uint16_t, uint16_t, uint16_t>(0, 64, 192, 255);
  write("x/e.mat", kaldi_header("CM", 0, 65535, 3, 2) + marks + marks + "\x01\x02\x03\x04\x05\x06");
  EXPECT_TRUE(read_kaldi_matrix((folder_ / "x/e.mat[1:2]").string()).allclose(matrix({{2, 5}, {3, 6}})));
  // Columns, of each way in which a matrix is stored; all rows but some columns.
  EXPECT_TRUE(read_kaldi_matrix((folder_ / "x/e.mat[1:2,1:1]").string()).allclose(matrix({{5}, {6}})));
  for (const auto& [range, expected] :
       std::vector<std::pair<std::string, at::Tensor>>{{"[1:2,0:0]", matrix({{3}, {5}})},
                                                       {"[:,1:1]", matrix({{2}, {4}, {6}, {8}})},
                                                       {"[3:6,:]", matrix({{7, 8}})},
                                                       {"[0:0,0:1]", matrix({{1, 2}})}}) {
    const at::Tensor part = read_kaldi_matrix(at + range);
    EXPECT_TRUE(part.equal(expected) && part.is_contiguous()) << range;
    const auto [rows, columns] = read_kaldi_size(at + range);
    EXPECT_EQ(expected.sizes(), (std::vector<int64_t>{rows, columns})) << range;
  }
  EXPECT_TRUE(read_kaldi_matrix((folder_ / "x/d.mat[0:1,1:1]").string()).equal(matrix({{2}, {4}})));
  write("x/ali.ark", "u " + kaldi_integers({3, 2, 1}));
  EXPECT_THAT(read_kaldi_integers((folder_ / "x/ali.ark:2").string()), ElementsAre(3, 2, 1));

  for (const auto& [location, problem] :
       {std::pair{at + "[4:5]", "has 4 rows, but those from 4 to 5"},
        {at + "[0:7]", "has 4 rows, but those from 0 to 7"},
        {at + "[2:1]", "must not end before they begin"},
        {at + "[0:1,0:2]", "has 2 columns, but those from 0 to 2"},
        {at + "[0:1,1:0]", "the columns of"},
        {at + "[0:1,]", "must be FILE, FILE:OFFSET"},
        {at + "[,0:1]", "must be FILE, FILE:OFFSET"},
        {at + "[0:1,0:1,0:1]", "must be FILE, FILE:OFFSET"},
        {at + "[]", "must be FILE, FILE:OFFSET"},
        {at + "[-1:1]", "must be FILE, FILE:OFFSET"},
        {ark.string() + ":3", "the entry at byte 3"},
        {ark.string() + ":99999", "byte 99999 of "},
        {ark.string() + ":99999999999999999999", "must be FILE, FILE:OFFSET"},
        {folder_.string() + "/none.ark:2", "there is no such file"},
        {std::string(":5"), "names no file"},
        {std::string("-"), "is the standard input"}}) {
    EXPECT_THAT(error_of([&] { read_kaldi_matrix(location); }), HasSubstr(problem)) << location;
    EXPECT_THAT(error_of([&] { read_kaldi_size(location); }), HasSubstr(problem)) << location;
  }
  EXPECT_THAT(error_of([&] { read_kaldi_integers((folder_ / "x/ali.ark:2[0:1]").string()); }),
              HasSubstr("asks for rows"));
}

TEST_F(KaldiArchiveTest, NeverRunsCommands) {
  const auto proof = folder_ / "proof";
  for (const std::string& command :
       {"touch " + proof.string() + " |", "| touch " + proof.string(), " touch " + proof.string() + " |  "}) {
    EXPECT_THAT(error_of([&] { read_kaldi_matrix(command); }),
                AllOf(HasSubstr("is a command, and commands are never run"), HasSubstr("name that file")));
    const auto script = write("a.scp", "a " + command + "\n");
    EXPECT_THAT(error_of([&] { read_kaldi_script(script); }),
                AllOf(HasSubstr("a.scp:1: the entry \"a\""), HasSubstr("never run")));
  }
  EXPECT_FALSE(std::filesystem::exists(proof));
}

TEST_F(KaldiArchiveTest, RefusesBadScripts) {
  EXPECT_THAT(error_of([&] { read_kaldi_script(write("a.scp", "a\n")); }),
              HasSubstr("a.scp:1: the entry \"a\" has no file"));
  EXPECT_THAT(error_of([&] { read_kaldi_script(write("a.scp", "a x\na y\n")); }),
              HasSubstr("a.scp:2: the entry \"a\" occurs twice"));
  EXPECT_THAT(error_of([&] { read_kaldi_script(write("a.scp", "")); }), HasSubstr("is empty"));
}

TEST_F(KaldiArchiveTest, RefusesEachCut) {
  const auto marks = bytes_of<uint16_t, uint16_t, uint16_t, uint16_t>(0, 1, 2, 3);
  for (const std::string& value :
       {kaldi_matrix<float>(2, 1, {1, 2}), kaldi_matrix<double>(1, 1, {1}),
        kaldi_header("CM", 0, 1, 2, 1) + marks + "ab", kaldi_header("CM2", 0, 1, 1, 1) + "ab",
        kaldi_header("CM3", 0, 1, 1, 2) + "ab", std::string("[ 1 2\n 3 4 ]")}) {
    const std::string whole = "utt1 " + value;
    EXPECT_EQ(read_matrices(write("a.ark", whole)).size(), 1u);
    for (size_t size = 0; size < whole.size(); ++size)
      EXPECT_THAT(error(whole.substr(0, size)), HasSubstr(size > 0 ? "cut off" : "is empty"))
          << size << " bytes of " << whole.size();
    // The same behind an entry that is whole.
    const std::string two = whole + "\n" + "utt2 " + value;
    EXPECT_EQ(read_matrices(write("a.ark", two)).size(), 2u);
    for (size_t size = whole.size() + 2; size < two.size(); ++size)
      EXPECT_THAT(error(two.substr(0, size)), HasSubstr("cut off")) << size;
  }
  const std::string numbers = "utt1 " + kaldi_integers({1, 2});
  for (size_t size = 0; size < numbers.size(); ++size)
    EXPECT_THAT(number_error(numbers.substr(0, size)), HasSubstr(size > 0 ? "cut off" : "is empty")) << size;
  EXPECT_THAT(number_error("utt1 1 2 3"), HasSubstr("no end of a line is behind its numbers"));
}

TEST_F(KaldiArchiveTest, RefusesDamage) {
  const std::string good = "utt1 " + kaldi_matrix<float>(1, 1, {1});
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  for (const auto& [bytes, problem] : std::vector<std::pair<std::string, std::string>>{
           {"u " + kaldi_matrix<float>(-1, 1, {}), "its number of rows is negative (-1)"},
           {"u " + kaldi_matrix<float>(1, -5, {}), "its number of columns is negative (-5)"},
           {"u " + kaldi_header("CM3", 0, 1, -2, 1), "its number of rows is negative (-2)"},
           {"u " + kaldi_matrix<float>(3, 0, {}), "cannot be a matrix of 3 rows of 0 numbers"},
           {"u " + kaldi_matrix<double>(kMost, kMost, {1}), "cannot be a matrix of 2147483647 rows"},
           {"u " + kaldi_matrix<float>(kMost, 100, {1}),
            "is damaged or cut off: its 2147483647 rows of 100 numbers take 858993458800 bytes, but the file "
            "has only 4 left"},
           {"u " + kaldi_header("CM", 0, 1, 10, 10) + std::string(179, 'a'),
            "take 180 bytes, but the file has only 179"},
           {"u " + std::string("\0BFV \4\1\0\0\0aaaa", 14), "holds a vector (FV), but a matrix is needed"},
           {"u " + std::string("\0BXM \4\1\0\0\0", 10), "holds something else (\"XM\")"},
           {"u " + std::string("\0BFM \5\1\0\0\0", 10), "its number of rows is not a number of four bytes"},
           {"u " + std::string("\0C", 2), "not with the mark"},
           {"u " + kaldi_integers({1}), "holds whole numbers, but a matrix is needed"},
           {"u RIFF", "holds no matrix, which would begin with"},
           {"u " + kaldi_matrix<float>(2, 2, {1, 2, NAN, 3}), "row 1, column 0"},
           {"u " + kaldi_matrix<float>(1, 2, {1, kInfinity}), "row 0, column 1"},
           {"u " + kaldi_matrix<double>(1, 1, {1e300}), "no finite number of single precision"},
           {"u " + kaldi_header("CM2", NAN, 1, 1, 1) + "ab", "no finite number"},
           {"u [ 1 2\n 3 ]\n", "has 2 columns in its first row, but 1 in row 1"},
           {"u [ 1 x ]\n", "holds \"x\", which is no number"},
           {"u [ 1 nan ]\n", "row 0, column 1"},
           {"u [ 1 1e999 ]\n", "no finite number of single precision in row 0, column 1"},
           {"u [ 1 [ ]\n", "which is no number"},
           {"u [ 1 ] 2\n", "goes on behind the \"]\""},
           {"u [ 1 \xff ]\n", "is no text of numbers"},
           {good + good, "the entry \"utt1\" occurs twice, again before byte 29"},
           {good + "utt2 [ 1 ]\n", "is text, but the entries before it are binary"},
           {"a [ 1 ]\n" + good, "is binary, but the entries before it are text"},
           {good + "\n garbage", "the entry \"garbage\" has no value"},
           {good + std::string(3, '\0') + " ", "what begins at byte 24 is no key of an entry"},
           {good + "\xff\xfe 1", "is no key of an entry, since it is not UTF-8"},
           {std::string(5000, 'k') + " [ 1 ]\n", "since it has more than 4096 bytes"},
           {"", "is empty"}}) {
    const auto message = error(bytes);
    EXPECT_THAT(message, HasSubstr(problem));
    EXPECT_THAT(message, testing::ContainsRegex("copy|write it again")) << problem;
  }
  for (const auto& [bytes, problem] : std::vector<std::pair<std::string, std::string>>{
           {"u " + kaldi_matrix<float>(1, 1, {1}), "holds a matrix (FM), but whole numbers are needed"},
           {"u " + std::string("\0B\4\xff\xff\xff\xff", 7), "its length is negative (-1)"},
           {"u " + std::string("\0B\4\xff\xff\xff\x7f", 7) + "a",
            "is damaged or cut off: its 2147483647 numbers take 10737418235 bytes, but the file has only 1"},
           {"u " + std::string("\0B\4\1\0\0\0\7\1\0\0\0", 12),
            "its number 0 (from 0 on) is not of four bytes"},
           {"u 1 2.5\n", "holds \"2.5\", but whole numbers of 32 bits are needed"},
           {"u 2147483648\n", "holds \"2147483648\""},
           {"u [ 1 ]\n", "holds a mark of a matrix"},
           {"u 1\nu 2\n", "the entry \"u\" occurs twice"}})
    EXPECT_THAT(number_error(bytes), AllOf(HasSubstr("a.ark"), HasSubstr(problem)));
}

TEST_F(KaldiArchiveTest, WritesWhatItReads) {
  const auto ark = folder_ / "b.ark", scp = folder_ / "b.scp";
  const auto first = torch::randn({7, 3}), second = torch::randn({1, 5}, torch::kDouble);
  KaldiArchiveWriter writer(ark, scp);
  writer.write("utt-1", first);
  writer.write("utt-2", second.t());
  EXPECT_FALSE(std::filesystem::exists(ark));  // only beside, until it is whole
  writer.close();
  const auto all = read_matrices(ark);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].first, "utt-1");
  EXPECT_TRUE(all[0].second.equal(first));
  EXPECT_TRUE(all[1].second.equal(second.t().to(torch::kFloat)));
  const auto entries = read_kaldi_script(scp);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[1].key, "utt-2");
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(read_kaldi_matrix(entries[i].location).equal(all[i].second));
  EXPECT_THAT(error_of([&] { writer.close(); }), HasSubstr("is closed already"));
  EXPECT_THAT(error_of([&] { writer.write("c", first); }), HasSubstr("takes no more entries"));
}

TEST_F(KaldiArchiveTest, ArchivesWithAnEntryThatFailedAreNotClosed) {
  KaldiArchiveWriter writer("/dev/full", folder_ / "b.scp");
  EXPECT_THROW(writer.write("a", torch::ones({1, 1})), std::runtime_error);
  EXPECT_THAT(error_of([&] { writer.close(); }), HasSubstr("is closed already"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "b.scp"));
}

TEST_F(KaldiArchiveTest, LeavesNothingHalfWritten) {
  {
    KaldiArchiveWriter writer(folder_ / "b.ark", folder_ / "b.scp");
    writer.write("a", torch::ones({1, 1}));
    for (const auto& [key, problem] : {std::pair{"a", "was written before"},
                                       {"", "is empty"},
                                       {"a b", "has white space"},
                                       {"a\n", "has white space"},
                                       {"\xff", "is not UTF-8"}})
      EXPECT_THAT(error_of([&] { writer.write(key, torch::ones({1, 1})); }), HasSubstr(problem));
    for (const auto& wrong : {torch::ones({2}), torch::ones({0, 3}), torch::ones({1, 1}, torch::kLong)})
      EXPECT_THAT(error_of([&] { writer.write("b", wrong); }), HasSubstr("must be (rows, columns)"));
    for (const auto& wrong : {torch::full({1, 1}, NAN), torch::full({1, 1}, 1e300, torch::kDouble)})
      EXPECT_THAT(error_of([&] { writer.write("b", wrong); }), HasSubstr("must hold finite numbers"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  EXPECT_THAT(error_of([&] { KaldiArchiveWriter(folder_ / "none/b.ark", folder_ / "b.scp"); }),
              HasSubstr("cannot create"));
  EXPECT_THAT(error_of([&] { KaldiArchiveWriter(" b.ark", folder_ / "b.scp"); }),
              HasSubstr("choose another name"));
  EXPECT_THAT(error_of([&] { KaldiArchiveWriter("| b.ark", folder_ / "b.scp"); }), HasSubstr("is a command"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

// The Python package kaldiio reads what we write, and we read what it writes. The environment variable
// QUATRAIN_PYTHON names an interpreter that has it, unless python3 has.
TEST_F(KaldiArchiveTest, AgreesWithKaldiio) {
  const char* named = std::getenv("QUATRAIN_PYTHON");
  const std::string python = named ? named : "python3";
  if (std::system((python + " -c 'import kaldiio' 2> /dev/null").c_str()) != 0)
    GTEST_SKIP() << python << " has no package kaldiio; QUATRAIN_PYTHON names another interpreter";
  KaldiArchiveWriter writer(folder_ / "ours.ark", folder_ / "ours.scp");
  writer.write("a", torch::randn({20, 3}));
  writer.write("b", torch::randn({2, 1}));
  writer.close();
  const auto script = write("kaldi.py", R"(
import sys, numpy, kaldiio
folder = sys.argv[1]
ours = kaldiio.load_scp(folder + '/ours.scp')
assert list(ours) == ['a', 'b'] and all(ours[key].dtype == numpy.float32 for key in ours)
for method in range(8):
    kaldiio.save_ark(f'{folder}/{method}.ark', dict(ours), compression_method=method or None)
kaldiio.save_ark(folder + '/text.ark', dict(ours), text=True)
kaldiio.save_ark(folder + '/double.ark', {key: ours[key].astype(numpy.float64) for key in ours})
kaldiio.save_ark(folder + '/ints.ark', {'a': numpy.array([3, 0, 70000], dtype=numpy.int32)})
for name in [*map(str, range(8)), 'text', 'double']:
    numpy.concatenate([v.astype(numpy.float32).ravel() for _, v in kaldiio.load_ark(f'{folder}/{name}.ark')]).tofile(f'{folder}/{name}.raw')
)");
  ASSERT_EQ(std::system((python + " " + script.string() + " " + folder_.string()).c_str()), 0);
  for (const std::string& name :
       std::vector<std::string>{"0", "1", "2", "3", "4", "5", "6", "7", "text", "double"}) {
    std::vector<at::Tensor> found;
    for (const auto& [key, value] : read_matrices(folder_ / (name + ".ark")))
      found.push_back(value.flatten());
    auto raw = std::vector<float>(62);
    std::ifstream(folder_ / (name + ".raw"), std::ios::binary)
        .read(reinterpret_cast<char*>(raw.data()), 62 * 4);
    EXPECT_TRUE(torch::cat(found).allclose(torch::tensor(raw), 1e-6, 1e-6)) << name;
  }
  KaldiArchive numbers(folder_ / "ints.ark");
  std::string key;
  std::vector<int32_t> values;
  ASSERT_TRUE(numbers.next(key, values));
  EXPECT_THAT(values, ElementsAre(3, 0, 70000));
}

}  // namespace
}  // namespace quatrain::data
