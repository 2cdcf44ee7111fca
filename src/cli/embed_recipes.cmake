# Writes the recipes' texts into OUTPUT as C++; run as a script, so that a changed recipe is embedded anew.
#   cmake -DOUTPUT=file.cpp -DRECIPES=a.toml,b.toml -P embed_recipes.cmake
string(REPLACE "," ";" RECIPES "${RECIPES}")
set(entries "")
foreach(path ${RECIPES})
  get_filename_component(name ${path} NAME_WE)
  file(READ ${path} text)
  string(APPEND entries "      {\"${name}\", R\"recipe(${text})recipe\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"cli/recipe_files.h\"

namespace quatrain::cli {

const std::vector<std::pair<std::string_view, std::string_view>>& embedded_recipes() {
  static const std::vector<std::pair<std::string_view, std::string_view>> all{
${entries}  };
  return all;
}

}  // namespace quatrain::cli
")
