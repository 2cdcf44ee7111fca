# Writes OUTPUT, a C++ file that holds the JSON files of FACTORS (separated by commas) as text.
# cmake -D OUTPUT=... -D FACTORS=a.json,b.json -P embed_factors.cmake
string(REPLACE "," ";" files "${FACTORS}")
set(entries "")
foreach(file IN LISTS files)
  file(READ "${file}" text)
  string(JSON algebra GET "${text}" algebra)
  string(APPEND entries "    {\"${algebra}\", R\"json(${text})json\"},\n")
endforeach()
file(WRITE "${OUTPUT}" "// Generated from src/algebra/factors/*.json by embed_factors.cmake.
#include \"algebra/factors.h\"

namespace quatrain::algebra {

const std::vector<EmbeddedFactors>& embedded_factors() {
  static const std::vector<EmbeddedFactors> all = {
${entries}  };
  return all;
}

}  // namespace quatrain::algebra
")
