"""Every public function and class has a docstring, and those of the core say what the C++ headers say."""
import pydoc
import re
import types
import unittest

from common import TestCase, ingot

# Bound by the extension for the package's own use.
INNER = re.compile(r"_pair$|_list$|_parts$|_dims$|_rows$|_n$|^linalg_|Guard$|^pad_|^scatter_set$|^dtype_named$|^from_bytes$|^promote_dtypes$|^set_package_folder$|^custom_function$")


def text(value):
    """The docstring without what the extension writes itself: signatures, and that there are several."""
    own = re.compile(r"(\d+\. ``)?\w+\(.*\) -> |Overloaded function\.$")
    return "\n".join(line for line in (value.__doc__ or "").split("\n") if not own.match(line)).strip()


def public(module):
    for name in dir(module):
        value = getattr(module, name)
        if not name.startswith("_") and callable(value) and not isinstance(value, types.ModuleType) and not INNER.search(name):
            yield name, value


class Docs(TestCase):
    def test_help_says_what_a_function_does(self):
        page = pydoc.render_doc(ingot.softmax, renderer=pydoc.plaintext)
        self.assertIn("softmax(input: Tensor, dim: int", page)
        self.assertIn("exp(x) / sum(exp(x)) along dim, stable", page)
        self.assertIn("Joined along one dim", pydoc.render_doc(ingot.cat))
        self.assertIn("written into this tensor", ingot.Tensor.relu_.__doc__)
        self.assertIn("The same as acos()", ingot.arccos.__doc__)
        self.assertIn("divides the rest by 1 - p", ingot.nn.functional.dropout.__doc__)
        self.assertIn("Times gamma every step_size steps", ingot.optim.lr_scheduler.StepLR.__doc__)

    def test_everything_has_a_text(self):
        parts = (ingot.Tensor, ingot.nn, ingot.nn.functional, ingot.nn.init, ingot.nn.Module, ingot.optim, ingot.optim.lr_scheduler, ingot.linalg,
                 ingot.special, ingot.cuda, ingot.utils.data, ingot.array_api)
        for part in parts:
            self.assertEqual([name for name, value in public(part) if not text(value)], [], part.__name__)

    def test_functions_of_the_core_have_a_text(self):
        functions = [name for name, value in public(ingot) if not isinstance(value, type) and not text(value)]
        self.assertEqual(functions, [])


if __name__ == "__main__":
    unittest.main()
