# The recipes that come with the program.
set(quatrain_recipes
  agreement
  hamilton
  imdb
  rotation
  sentiment
  text
)
