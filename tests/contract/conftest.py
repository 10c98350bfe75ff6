import pytest

pytest.register_assert_rewrite("qrmem.graphstore.testing")
