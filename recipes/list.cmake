# The recipes that come with the program.
set(quatrain_recipes
  agreement
  sentiment
  text
)
