"""Programs that show one feature each; see README.md in this folder."""
