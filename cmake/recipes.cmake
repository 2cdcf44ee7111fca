# The recipes that come with the program.
set(quatrain_recipes
  agreement
  copy_memory
  hamilton
  imdb
  language_model
  math
  mlu
  reverse
  rotation
  sentiment
  style
  text
  translation
)
