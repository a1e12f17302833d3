// For NumPy users: NumPy's expressions and their equivalents. A tensor is an array that may be on a
// GPU and have a gradient; to read its values on the host they are copied (to_vector, item).
//
//   numpy [--device cpu]
#include <ingot/ingot.h>
using namespace ingot;

int main(int argc, char** argv) {
  set_default_device(argc > 1 ? Device(argv[argc - 1]) : Device::best());
  manual_seed(0);  // np.random.seed(0)
  Tensor a =
      arange(12).reshape({3, 4}).to(float32);  // a = np.arange(12, dtype=np.float32).reshape(3, 4)
  Tensor z = zeros({3, 4}), i = eye(3);        // z = np.zeros((3, 4)); i = np.eye(3)
  Tensor r = randn({4, 2});                    // r = np.random.randn(4, 2)
  std::cout << a[{Slice{0, 2}, -1}] << "\n";   // a[0:2, -1]
  std::cout << a[{Ellipsis, Slice{{}, {}, 2}}] << "\n";       // a[..., ::2]
  std::cout << a.sum(0) << a.mean(1) << "\n";                 // a.sum(axis=0), a.mean(axis=1)
  std::cout << to_string(matmul(a, r).shape()) << "\n";       // (a @ r).shape
  std::cout << to_string(a.transpose(0, 1).shape()) << "\n";  // a.T.shape
  std::cout << where(a > 5, a, z) << "\n";                    // np.where(a > 5, a, z)
  std::cout << to_string(cat({a, z}, 0).shape()) << "\n";  // np.concatenate([a, z], axis=0).shape
  std::cout << a[a > 9] << "\n";                           // a[a > 9]
  a += 1;                                                  // a += 1
  std::cout << a.max().item() << "\n";                     // a.max()
  std::cout << a.argmax(1) << "\n";                        // a.argmax(axis=1)
  std::cout << einsum("ij,ij->i", {a, a}) << "\n";         // np.einsum("ij,ij->i", a, a)

  // float32 unless said otherwise (NumPy: float64); integers are int64 as there.
  std::cout << name_of(tensor({1.5, 2.5}).dtype()) << " " << name_of(arange(3).dtype()) << "\n";
  // To the host and back: a copy each way (NumPy arrays are always the host's).
  std::vector<float> host = a.to_vector<float>();
  host[0] = 100;
  std::cout << tensor(host, {3, 4})[{0, 0}].item() << "\n";
}
