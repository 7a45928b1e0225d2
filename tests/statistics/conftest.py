"""Statistics tests import the modules beside them."""
